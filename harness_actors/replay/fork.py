"""A new run that begins as another one began, and goes on by itself from a turn."""

from dataclasses import dataclass

from harness_actors.errors import BadInputError
from harness_actors.events import TurnStarted
from harness_actors.messages import Message
from harness_actors.replay.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """What a forked run begins with.

    Attributes:
        run_id: The run that it is forked from.
        turn: The turn of it that is done anew.
        messages: Its log up to the start of that turn, as it stands in the journal; the
            task of the new run, which thereby has a conversation of its own.
    """

    run_id: str
    turn: int
    messages: tuple[Message, ...]

    @property
    def metadata(self) -> dict[str, object]:
        """What the new run says of where it comes from."""
        return {"forked_from": {"run_id": self.run_id, "turn": self.turn}}


def plan_fork(recording: Recording, turn: int) -> Fork:
    """What a fork from the start of a turn begins with; turn 1 begins at the task.

    Raises:
        BadInputError: The run has no such turn.
    """
    position = next(
        (
            change.position
            for change in recording.changes
            for event in change.delta.events
            if isinstance(event, TurnStarted) and event.turn == turn
        ),
        None,
    )
    if position is None:
        problem = f"run {recording.spec.run_id!r} has turns 1 to {recording.turns}, and no {turn}"
        if not recording.turns:
            problem = f"run {recording.spec.run_id!r} has not begun its first turn"
        raise BadInputError("--from", (problem,))
    log = recording.log_before(position)
    if turn == 1:
        # The first turn puts the task into the log, in the change that announces it.
        log += recording.spec.task
    return Fork(run_id=recording.spec.run_id, turn=turn, messages=tuple(log))
