"""What people answer to runs: taken if it is the first answer, and refused for its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.errors import HarnessError
from tests.simulation.approvals import is_decision
from tests.simulation.ledger import Ledger

if TYPE_CHECKING:
    from tests.simulation.waits import Waits

FIRST = "the first answer to a question counts"
REFUSED = "what is refused is refused for its reason"
ACKNOWLEDGED = "what was acknowledged is on disk"


@dataclass
class Answered:
    """What is known of the questions of one run.

    Attributes:
        asked: The questions that its user was told of, by their ids: which calls asked them.
        options: What may be answered to each; empty for anything.
        calls: Ids of those that ask for approval of a call.
        expires: Until when each may be decided, in seconds since the epoch; None for no end.
        given: The first answer to each, by their ids.
        waits: How often a turn of it has begun to wait.
        waited_s: For how long it has waited, but for the wait in progress.
        held: Ids of the calls of its message that have not begun.
    """

    asked: dict[str, str] = field(default_factory=dict)
    options: dict[str, Sequence[str]] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)
    expires: dict[str, float | None] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    waits: int = 0
    waited_s: float = 0.0
    held: frozenset[str] = frozenset()

    def by_key(self) -> dict[str, str]:
        """The answers, by the calls that asked; none is unanswered where the text is empty."""
        return {key: self.given.get(number, "") for number, key in self.asked.items()}


@dataclass(eq=False)
class Reply:
    """Answers of a person that are on their way to a run.

    Attributes:
        run_id: The run.
        answers: By the ids of its questions.
        fits: The run could have taken them all of the time since.
        known: The run was on disk when they were given.
    """

    run_id: str
    answers: Mapping[str, str]
    fits: bool
    known: bool


class Replies:
    """Watches what becomes of answers.

    Args:
        ledger: Where it is written down.
        waits: Knows which runs wait, and for what.
    """

    def __init__(self, ledger: Ledger, waits: "Waits") -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._waits = waits
        self._replies: list[Reply] = []

    def says(self, run_id: str, answers: Mapping[str, str]) -> Reply:
        """A person answers a run."""
        reply = Reply(run_id, answers, fits=True, known=run_id in self._disk.runs)
        self._replies.append(reply)
        self.look_at(run_id)
        return reply

    def done(self, reply: Reply) -> None:
        """It was told what came of it, or will never be."""
        self._replies.remove(reply)

    def look_at(self, run_id: str) -> None:
        """Something changed of a run."""
        for reply in self._replies:
            if reply.run_id == run_id and not self._fits(reply):
                reply.fits = False

    def _fits(self, reply: Reply) -> bool:
        known = self._waits.of(reply.run_id)
        return self._waits.is_waiting(reply.run_id) and all(
            question_id in known.asked
            and question_id not in known.given
            and text in (known.options[question_id] or (text,))
            and bool(text.strip())
            and (question_id not in known.calls or is_decision(text))
            and self._is_in_time(known.expires[question_id])
            for question_id, text in reply.answers.items()
        )

    def _is_in_time(self, expires_at: float | None) -> bool:
        return expires_at is None or EPOCH + self._ledger.loop.time() < expires_at

    def was_taken(self, reply: Reply) -> None:
        """A person is told that its answers are taken."""
        given = self._waits.of(reply.run_id).given
        for question_id, text in reply.answers.items():
            if question_id not in given:
                self._ledger.broken(ACKNOWLEDGED, f"the answer of {reply.run_id} to {question_id}")
            elif given[question_id] != text:
                told = f"{text!r} was taken by {reply.run_id}, which had {given[question_id]!r}"
                self._ledger.broken(FIRST, told)

    def was_refused(self, reply: Reply, error: HarnessError) -> None:
        """A person is told that its answers are not taken."""
        given = self._waits.of(reply.run_id).given
        counts = bool(reply.answers) and all(
            # Of options, somebody else may have chosen the same.
            given.get(question_id) == text and "says" in text
            for question_id, text in reply.answers.items()
        )
        self.look_at(reply.run_id)
        unknown = reply.known and reply.run_id not in self._disk.runs
        if reply.fits or counts or unknown:
            why = "its answer is the one that counts" if counts else "it could be taken"
            self._ledger.broken(REFUSED, f"{error}; {why}")
