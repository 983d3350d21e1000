"""What a user's own executor may say: nothing that the journal could not hold or read back.

There it would stop the cell with all its runs.
"""

from harness_actors.errors import WorkflowError
from harness_actors.events import EVENT_TYPES, encode_event
from harness_actors.messages import check_plain
from harness_actors.signals import Outcome, RunEnd, Waiting, Yielded
from harness_actors.state import StateDelta


def check_change(executor: str, delta: StateDelta) -> None:
    """Refuse a change that cannot be committed.

    Args:
        executor: Name of the executor that made it.
        delta: The change.

    Raises:
        WorkflowError: An event is of a class that no reader knows, or a value is not plain
            JSON.
    """
    for event in delta.events:
        if type(event).type not in EVENT_TYPES:
            problem = f"emits a {type(event).__name__}; use CustomEvent(name=, data=)"
            raise WorkflowError(executor, problem)
        check_plain(f"event {event.type!r}", encode_event(event))
    check_plain("state", {write.key: write.value for write in delta.writes})


def check_outcome(executor: str, outcome: object, *, is_ours: bool = False) -> None:
    """Refuse what is no answer of an executor.

    Args:
        executor: Name of the executor that answered.
        outcome: What it answered.
        is_ours: It is none of a user's own: our agent turn alone may ask a user, or wait until
            room is made.

    Raises:
        WorkflowError: It is none of the kinds that there are, or its details are not plain
            JSON.
    """
    if not isinstance(outcome, Outcome) or (isinstance(outcome, Waiting | Yielded) and not is_ours):
        problem = f"must answer a signal, Parked() or RunEnd(...), not {outcome!r}"
        raise WorkflowError(executor, problem)
    if isinstance(outcome, RunEnd):
        check_plain(f"reason {outcome.reason.kind!r}", outcome.reason.details)
