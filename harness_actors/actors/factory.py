"""Our executors, put together for the process that hosts them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from harness_actors.coordination.active import ExecutorNeeds
from harness_actors.coordination.protocol import Slot
from harness_actors.executors import AgentTurn, Compaction, Repair, StopDecision
from harness_actors.ports import Clock, Executor
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION
from harness_actors.turn.services import AgentTurnServices

TOOL_THREADS = 32
"""Blocking tools that one agent turn host runs at once; the others wait their turn."""

_CLASSES: Mapping[str, type[Repair | Compaction | AgentTurn | StopDecision]] = {
    REPAIR: Repair,
    COMPACTION: Compaction,
    AGENT_TURN: AgentTurn,
    STOP_DECISION: StopDecision,
}


def executor_needs() -> Mapping[str, ExecutorNeeds]:
    """What each of our executors is sent with a signal, by name."""
    return {
        name: ExecutorNeeds(keys=tuple(key.name for key in kind.reads), log=kind.reads_log)
        for name, kind in _CLASSES.items()
    }


def executor_for(slot: Slot, clock: Clock) -> Executor | None:
    """The executor of a slot; None where it comes in the run's own code."""
    if slot.code:
        return None
    match slot.executor:
        case "repair":
            return Repair()
        case "compaction":
            return Compaction()
        case "agent_turn":
            # Of the four, only this one's process needs them.
            from harness_actors.models.tokens import counter_for
            from harness_actors.tools.workspace import prepare_workspace

            return AgentTurn(
                AgentTurnServices(
                    counter_for=counter_for,
                    clock=clock,
                    in_thread=_in_pool(ThreadPoolExecutor(TOOL_THREADS, "tool")),
                    prepare_workspace=prepare_workspace,
                )
            )
        case "stop_decision":
            return StopDecision()
        case other:
            raise ValueError(f"no executor {other!r}")


def _in_pool(pool: ThreadPoolExecutor) -> Callable[..., Awaitable[Any]]:
    def in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Awaitable[Any]:
        call = partial(function, *args, **kwargs)
        return asyncio.get_running_loop().run_in_executor(pool, call)

    return in_thread
