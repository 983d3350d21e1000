"""Text that is told while a model says it; never stored."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from harness_actors.events.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of an answer, told while the model says it.

    It is in no journal: it may be lost, and come to be void.

    Attributes:
        run_id: The run.
        turn: The turn, counted from 1.
        round: The round of the turn, counted from 1.
        attempt: How often the answer of this round was begun in the eyes of its reader. What
            was said in an earlier attempt is void: a process died, or the provider broke off.
        text: What was said; never empty.
    """

    type: ClassVar[str] = "text_delta"

    run_id: str
    turn: int
    round: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextGap:
    """Text is missing here: its reader was too slow, or a process died.

    The answer itself is not; it comes with the events of its round.

    Attributes:
        run_id: The run.
        missed: Characters; None where nobody knows how many.
    """

    type: ClassVar[str] = "text_gap"

    run_id: str
    missed: int | None


class TextSink(Protocol):
    """Takes the text of a run's answers, one answer at a time, and what follows from each.

    Never waits, never raises.
    """

    def begin(self, turn: int, round: int) -> None:
        """An answer begins; what was said of the same round before is void."""

    def say(self, text: str) -> None:
        """The answer goes on."""

    def end(self) -> None:
        """The answer is complete."""

    def announce(self, turn: int, round: int, event: Event) -> None:
        """Tell what happens in a round before it is on disk."""
