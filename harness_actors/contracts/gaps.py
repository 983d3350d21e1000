"""What is missing of a contract, in words for the model, and what a task came to."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from harness_actors.contracts.contract import TaskContract, UserQuestion
from harness_actors.contracts.ledger import CoverageLedger, RequirementStatus, status_of

MOST_SHOWN = 20
"""Requirements of which a message says what is missing; of more it says how many."""
CONFIDENCE = 0.8
Recommendation = Literal["done", "need_user", "continue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A requirement that is not met.

    Attributes:
        id: Of its output.
        description: What is required.
        status: How it stands.
        why: What is missing.
    """

    id: str
    description: str
    status: RequirementStatus
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """What keeps a task from being over.

    Attributes:
        unmet_requirements: What is required and not there, in the order of the contract.
        unanswered_questions: What its user did not say yet.
        needs_answers: They are more than may be.
        doubt: Why the model is not sure enough; empty where it is, or did not say.
    """

    unmet_requirements: tuple[Gap, ...] = ()
    unanswered_questions: tuple[UserQuestion, ...] = ()
    needs_answers: bool = False
    doubt: str = ""

    @classmethod
    def of(
        cls, contract: TaskContract, ledger: CoverageLedger, *, confidence: float | None = None
    ) -> Self:
        """What is missing.

        Args:
            contract: What is required.
            ledger: How that stands.
            confidence: How sure the model is, from 0 to 1; None where it did not say.
        """
        criteria = contract.acceptability
        gaps = tuple(
            Gap(id=output.id, description=output.description, status=entry.status, why=entry.notes)
            for output in contract.required
            for entry in (ledger.entries[output.id],)
            if not entry.is_enough(allow_partial=criteria.allow_partial)
        )
        unanswered = tuple(one for one in contract.questions if one.answer is None)
        doubt = ""
        if confidence is not None and confidence < criteria.min_confidence:
            doubt = f"you said {confidence:g}, and {criteria.min_confidence:g} is needed"
        return cls(
            unmet_requirements=gaps,
            unanswered_questions=unanswered,
            needs_answers=len(unanswered) > criteria.max_known_unknowns,
            doubt=doubt,
        )

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What to do about it, a sentence each; none where nothing is missing."""
        found = []
        if self.unmet_requirements:
            found.append(f"Complete {len(self.unmet_requirements)} remaining requirement(s)")
        if self.needs_answers:
            found.append(f"Ask {len(self.unanswered_questions)} clarifying question(s)")
        if self.doubt:
            found.append(f"Look again at what you are not sure of: {self.doubt}")
        return tuple(found)

    @property
    def is_empty(self) -> bool:
        """Whether nothing keeps the task from being over."""
        return not (self.unmet_requirements or self.needs_answers or self.doubt)

    def text(self) -> str:
        """All of it as one message to the model; empty where nothing is missing."""
        if self.is_empty:
            return ""
        lines = ["The task is not over yet."]
        if self.unmet_requirements:
            lines.append("Required, and not there:")
            lines += [_line(gap) for gap in self.unmet_requirements[:MOST_SHOWN]]
            if (more := len(self.unmet_requirements) - MOST_SHOWN) > 0:
                lines.append(f"- and {more} more")
        if self.needs_answers:
            lines.append("Not answered by the user yet:")
            lines += [f"- {one.id}: {one.question}" for one in self.unanswered_questions]
        lines += [f"{one}." for one in self.suggestions]
        return "\n".join(lines)

    def as_plain(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "suggestions": list(self.suggestions)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionReport:
    """What a task came to, as the harness found it.

    Attributes:
        recommendation: `done`; `need_user` where only answers are missing; or `continue`.
        deliverables: The files that requirements are met by.
        requirements_coverage: How each requirement stands.
        open_questions: What was not answered.
        confidence: How sure the model is, from 0 to 1.
        summary: In the model's words.
    """

    recommendation: Recommendation
    deliverables: tuple[str, ...] = ()
    requirements_coverage: Mapping[str, RequirementStatus]
    open_questions: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    summary: str = ""

    @classmethod
    def of(
        cls,
        contract: TaskContract,
        ledger: CoverageLedger,
        *,
        confidence: float | None = None,
        summary: str = "",
    ) -> Self:
        """What a task came to; arguments as of `GapReport.of`."""
        gaps = GapReport.of(contract, ledger, confidence=confidence)
        files = (
            one.ref
            for entry in ledger.entries.values()
            for one in entry.evidence
            if one.kind == "artifact"
        )
        return cls(
            recommendation=_recommended(gaps),
            deliverables=tuple(dict.fromkeys(files)),
            requirements_coverage={name: one.status for name, one in ledger.entries.items()},
            open_questions=tuple(one.question for one in gaps.unanswered_questions),
            confidence=CONFIDENCE if confidence is None else confidence,
            summary=summary,
        )

    def as_plain(self) -> dict[str, Any]:
        """As plain values, which `from_plain` takes."""
        return {
            **asdict(self),
            "deliverables": list(self.deliverables),
            "open_questions": list(self.open_questions),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The report of what `as_plain` gave."""
        coverage = {name: status_of(word) for name, word in plain["requirements_coverage"].items()}
        return cls(
            recommendation=plain["recommendation"],
            deliverables=tuple(plain["deliverables"]),
            requirements_coverage=coverage,
            open_questions=tuple(plain["open_questions"]),
            confidence=plain["confidence"],
            summary=plain["summary"],
        )


def _recommended(gaps: GapReport) -> Recommendation:
    if gaps.is_empty:
        return "done"
    only_answers = not (gaps.unmet_requirements or gaps.doubt)
    return "need_user" if only_answers else "continue"


def _line(gap: Gap) -> str:
    part = " (a part of it is there)" if gap.status == "partially_met" else ""
    return f"- {gap.id}: {gap.description}{part}: {gap.why}"
