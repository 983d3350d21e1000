"""How runs end: what the coordinator decides itself, and what every ending leaves behind."""

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.coordination.active import ActiveRun
from harness_actors.coordination.protocol import Slot
from harness_actors.events import RunCompleted
from harness_actors.messages import Message
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.signals import RunEnd
from harness_actors.state import TURN_COUNT, USAGE, SharedState, StateDelta

CANCELLED = RunEnd(status="cancelled", reason=Reason(kind="user", message="cancelled by its user"))


def agent_error(message: str) -> RunEnd:
    """A user's executor did what its workflow does not allow."""
    return RunEnd(status="failed", reason=Reason(kind="agent_error", message=message))


def executor_lost(slot: Slot, losses: int) -> RunEnd:
    """The run, and nothing else, keeps killing the process that serves it."""
    message = (
        f"the process of {slot} died {losses} times while a tool of this run was running; "
        "the tool probably crashes its process or needs more memory than there is"
    )
    return RunEnd(status="failed", reason=Reason(kind="executor_lost", message=message))


def last_words(state: SharedState, end: RunEnd) -> StateDelta:
    """The last change of a run: calls that are open get a result, and the end is told."""
    unanswered = tuple(
        Message.tool_result(call.id, UNKNOWN_OUTCOME, is_error=True)
        for call in state.log.open_calls()
    )
    completed = RunCompleted(status=end.status, reason=end.reason.kind, message=end.reason.message)
    return StateDelta(messages=unanswered, events=(completed,))


def result_of(run: ActiveRun, end: RunEnd, *, now: float) -> HarnessResult:
    """The result of a run that ends now, in seconds since the epoch."""
    values = run.state.values
    return HarnessResult(
        run_id=run.spec.run_id,
        status=end.status,
        reason=end.reason,
        turn_count=values.get(TURN_COUNT.name, 0),
        output_text=end.output_text,
        completion_verified=end.completion_verified,
        usage=Usage(**values.get(USAGE.name, {})),
        wall_s=max(0.0, now - run.started_at),
    )
