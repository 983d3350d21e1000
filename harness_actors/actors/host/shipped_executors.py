"""Our executors, put together for the process that hosts them."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from harness_actors.actors.output import Keeping
from harness_actors.actors.processes import COMPANION_ROLE, this_node
from harness_actors.coordination.active import ExecutorNeeds
from harness_actors.coordination.protocol import Slot
from harness_actors.executors import AgentTurn, Compaction, Repair, StopDecision
from harness_actors.ports import Clock, Executor, ToolProcesses
from harness_actors.records import ProcessMark
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION, observed_by
from harness_actors.turn.services import RUN_VARIABLE, AgentTurnServices
from harness_actors.turn.threads import ToolThreads

if TYPE_CHECKING:
    from harness_actors.tools.supervision.client import SupervisedProcesses

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
        name: ExecutorNeeds(
            keys=(*(key.name for key in kind.reads), observed_by(name)), log=kind.reads_log
        )
        for name, kind in _CLASSES.items()
    }


def executor_for(
    slot: Slot, clock: Clock, processes: ToolProcesses | None = None
) -> Executor | None:
    """The executor of a slot; None where it comes in the run's own code.

    Args:
        slot: The slot.
        clock: Its time.
        processes: What starts the processes of its tools, if it is an agent turn.
    """
    if slot.code:
        return None
    match slot.executor:
        case "repair":
            from harness_actors.tools.reaping import RunReaper

            return Repair(RunReaper(RUN_VARIABLE).end_run)
        case "compaction":
            return Compaction()
        case "agent_turn":
            # Of the four, only this one's process needs them.
            from harness_actors.models.tokens import counter_for
            from harness_actors.tools.standing import watch_workspace
            from harness_actors.tools.workspace import prepare_workspace

            return AgentTurn(
                AgentTurnServices(
                    counter_for=counter_for,
                    clock=clock,
                    in_thread=ToolThreads(TOOL_THREADS).run,
                    prepare_workspace=prepare_workspace,
                    watch_workspace=watch_workspace,
                    processes=processes,
                )
            )
        case "stop_decision":
            return StopDecision()
        case other:
            raise ValueError(f"no executor {other!r}")


def processes_for(
    slot: Slot, *, own_process: bool, carried: int | None = None
) -> "SupervisedProcesses | None":
    """What starts the processes of a slot's tools; None where it serves none of ours.

    Args:
        slot: The slot.
        own_process: Its host has this process to itself. Then the supervisor is started at
            once, and what the host starts past it, as a tool does with `subprocess`, ends
            with this process, too.
        carried: The mark of the journal that it serves, for the supervisor; see `carrying`.
    """
    if slot.executor != AGENT_TURN or slot.code:
        return None
    from harness_actors.tools.supervision.client import SupervisedProcesses
    from harness_actors.tools.supervision.launch import ACTOR_VARIABLE

    if not own_process:
        return SupervisedProcesses()
    os.environ[ACTOR_VARIABLE] = mark = token_hex(8)
    processes = SupervisedProcesses(mark=mark, detached=True, carried=carried)
    processes.supervisor()
    return processes


def runs_users_code(slot: Slot) -> bool:
    """Whether the host in a slot calls tools, models or executors of users."""
    return slot.executor == AGENT_TURN or bool(slot.code)


def keeping_for(slot: Slot, store: Path | None) -> Callable[[str], AbstractContextManager[None]]:
    """What keeps the prints of a slot's runs beside their journal; it may keep nothing."""
    if store is None or not runs_users_code(slot):
        return lambda _: nullcontext()
    return partial(Keeping, store, executor=slot.executor)


def companions_of(
    slot: Slot, processes: "SupervisedProcesses | None"
) -> Callable[[], tuple[ProcessMark, ...]]:
    """The other processes that must be gone before the runs of a slot's host go on elsewhere."""

    def companions() -> tuple[ProcessMark, ...]:
        supervisor = None if processes is None else processes.supervisor()
        if supervisor is None:
            return ()
        mark = ProcessMark(
            role=COMPANION_ROLE + str(slot),
            node=this_node(),
            pid=supervisor.pid,
            started=supervisor.started,
        )
        return (mark,)

    return companions
