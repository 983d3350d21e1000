"""The first executor of a cycle: begins a run, and closes what a crash left open."""

from collections.abc import Awaitable, Callable
from typing import Any

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.events import Repaired, RunResumed, RunStarted
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.records import RunSpec
from harness_actors.signals import RepairComplete, RepairTrigger, Signal
from harness_actors.state import (
    OPEN_CALLS,
    QUESTIONS,
    REPAIR,
    REPAIRS,
    REQUEST_TOKENS,
    STARTED,
    TURN_COUNT,
    UNJUDGED,
    StateKey,
)

PREVIEW_CHARS = 100


class Repair:
    """Makes sure that every tool call of the log has, or will get, exactly one result.

    It is sent the index of open calls and not the log. A call that is not idempotent
    gets the result that its outcome is unknown; idempotent ones stay open, and the agent
    turn runs them again before it asks the model for more.

    Args:
        end_processes: Called with a run that was interrupted; returns when no process of its
            tools is left on this machine. None where there can be none.
    """

    name = REPAIR
    reads: tuple[StateKey[Any], ...] = (STARTED, OPEN_CALLS, TURN_COUNT, QUESTIONS)
    reads_log = False

    def __init__(self, end_processes: Callable[[str], Awaitable[None]] | None = None) -> None:
        self._end_processes = end_processes

    async def handle(self, signal: Signal, context: RunContext) -> RepairComplete:
        resumed = isinstance(signal, RepairTrigger) and signal.resumed
        if resumed and self._end_processes is not None:
            await self._end_processes(context.spec.run_id)
        if not context.get(STARTED):
            _start(context)
        elif resumed:
            context.emit(RunResumed(turn=context.get(TURN_COUNT)))
        return RepairComplete(repairs_made=_close_calls(context))


def _start(context: RunContext) -> None:
    config = context.spec.config
    context.set(STARTED, True)
    context.emit(
        RunStarted(
            task_preview=_preview(context.spec),
            stop_policy=config.stop_policy,
            max_turns=config.max_turns,
        )
    )


def _preview(spec: RunSpec) -> str:
    texts = (message.text for message in spec.said if message.role == "user")
    return next(texts, "")[:PREVIEW_CHARS]


def _held(context: RunContext) -> tuple[str, ...]:
    questions = context.get(QUESTIONS)
    return () if questions is None else questions.held


def _close_calls(context: RunContext) -> int:
    """Answer the open calls that must not run again; the number of them."""
    calls = context.get(OPEN_CALLS)
    # Those that have not begun wait with the question before them.
    held = _held(context)
    lost = [call for call in calls if not call.idempotent and call.call_id not in held]
    for call in lost:
        result = Message.tool_result(call.call_id, UNKNOWN_OUTCOME, failure="unknown")
        context.add_message(result)
        context.increment(REQUEST_TOKENS, result.tokens)
        context.emit(
            Repaired(
                kind="dangling_tool_call",
                call_id=call.call_id,
                tool_name=call.tool_name,
                turn=call.turn,
            )
        )
    if lost:
        context.increment(REPAIRS, len(lost))
        context.set(OPEN_CALLS, tuple(call for call in calls if call not in lost))
        if context.spec.config.stall is not None:
            context.set(UNJUDGED, True)
    return len(lost)
