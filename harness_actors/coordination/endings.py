"""Ends of runs that the coordinator decides, and not an executor."""

from harness_actors.coordination.protocol import Slot
from harness_actors.results import Reason
from harness_actors.signals import RunEnd

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
