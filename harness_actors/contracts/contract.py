"""A contract: what a task must have come to before it is over."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from harness_actors.contracts.contradictions import contradiction_in
from harness_actors.contracts.fields import (
    ID_CHARS,
    check_flag,
    check_share,
    check_text,
    check_whole,
    shown,
    texts,
)
from harness_actors.contracts.leaves import (
    AlwaysTrue,
)
from harness_actors.contracts.predicates import (
    PREDICATES,
    Predicate,
)
from harness_actors.errors import ConfigError
from harness_actors.messages import encode_json

OutputType = Literal["artifact", "response", "action"]
OUTPUT_TYPES: tuple[OutputType, ...] = get_args(OutputType)
MOST_OUTPUTS = 1_000
MOST_QUESTIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredOutput:
    """One thing that a task must have come to.

    Attributes:
        id: Unique in its contract.
        description: What it is, in words for the model.
        type: What kind of thing that is: a file, something said, something done.
        predicate: What shows that it is there.
        optional: The task is over without it, too.
    """

    id: str
    description: str
    type: OutputType = "response"
    predicate: Predicate = field(default_factory=AlwaysTrue)
    optional: bool = False

    def __post_init__(self) -> None:
        check_text("id", self.id, most=ID_CHARS)
        check_text("description", self.description)
        if self.type not in OUTPUT_TYPES:
            problem = f"must be one of {', '.join(OUTPUT_TYPES)}, not {shown(self.type)}"
            raise ConfigError("type", problem)
        if not isinstance(self.predicate, PREDICATES):
            raise ConfigError("predicate", f"must be a predicate, not {shown(self.predicate)}")
        check_flag("optional", self.optional)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserQuestion:
    """Something that the user is to say before the task is over.

    Attributes:
        id: Unique in its contract.
        question: What is asked.
        required_for: Ids of the outputs that need the answer.
        asked: It was put to the user.
        answer: What they said; None where nobody did.
    """

    id: str
    question: str
    required_for: tuple[str, ...] = ()
    asked: bool = False
    answer: str | None = None

    def __post_init__(self) -> None:
        check_text("id", self.id, most=ID_CHARS)
        check_text("question", self.question)
        object.__setattr__(self, "required_for", texts("required_for", self.required_for))
        check_flag("asked", self.asked)
        if self.answer is not None:
            check_text("answer", self.answer, most=100_000)
            if not self.asked:
                raise ConfigError("answer", "is given, but `asked` is false; say `asked: true`")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptabilityCriteria:
    """How much of a contract is enough.

    Attributes:
        max_known_unknowns: Questions that may be without an answer.
        min_confidence: How sure the model must be, where it says so, from 0 to 1.
        allow_partial: An output of which a part is there counts.
    """

    max_known_unknowns: int = 0
    min_confidence: float = 0.6
    allow_partial: bool = False

    def __post_init__(self) -> None:
        check_whole("max_known_unknowns", self.max_known_unknowns)
        check_share("min_confidence", self.min_confidence)
        check_flag("allow_partial", self.allow_partial)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContract:
    """What a task must have come to.

    Attributes:
        goal: What it is for, in a sentence.
        outputs: What must be there, and what shows that it is.
        questions: What its user is to say.
        acceptability: How much of it is enough.
        id: What it is known by; empty: made of its content.
    """

    goal: str
    outputs: tuple[RequiredOutput, ...]
    questions: tuple[UserQuestion, ...] = ()
    acceptability: AcceptabilityCriteria = field(default_factory=AcceptabilityCriteria)
    id: str = ""

    def __post_init__(self) -> None:
        check_text("goal", self.goal)
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "questions", tuple(self.questions))
        if not self.outputs:
            raise ConfigError("outputs", "is empty; a contract that requires nothing is always met")
        for name, found, most in (
            ("outputs", self.outputs, MOST_OUTPUTS),
            ("questions", self.questions, MOST_QUESTIONS),
        ):
            if len(found) > most:
                raise ConfigError(name, f"are {len(found):,}; {most:,} are allowed")
            _check_ids(name, [each.id for each in found])
        self._check_questions()
        if fault := contradiction_in(self.outputs):
            place, problem = fault
            raise ConfigError(f"outputs[{place}].predicate", problem)
        if self.id:
            check_text("id", self.id, most=ID_CHARS)
        else:
            from harness_actors.contracts.plain import as_plain

            content = encode_json(as_plain(self))
            object.__setattr__(self, "id", hashlib.sha256(content).hexdigest()[:16])

    @classmethod
    def simple(cls, goal: str, *requirements: str) -> Self:
        """A contract of descriptions alone: that they are met is left to the model.

        Args:
            goal: What the task is for.
            requirements: What must be so; their ids are R1, R2 and so on.

        >>> [each.id for each in TaskContract.simple("a report", "a summary", "a table").outputs]
        ['R1', 'R2']
        """
        outputs = tuple(
            RequiredOutput(id=f"R{number}", description=text)
            for number, text in enumerate(requirements, 1)
        )
        return cls(goal=goal, outputs=outputs)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "TaskContract":
        """The contract that plain values describe, as a file has them.

        Raises:
            BadInputError: Something is wrong with it; names all fields at fault.
        """
        from harness_actors.contracts.plain import contract_of

        return contract_of(given)

    @property
    def required(self) -> tuple[RequiredOutput, ...]:
        """The outputs without which it is not met."""
        return tuple(output for output in self.outputs if not output.optional)

    def as_plain(self) -> dict[str, Any]:
        """As plain values, which `from_mapping` takes."""
        from harness_actors.contracts.plain import as_plain

        return as_plain(self)

    def _check_questions(self) -> None:
        known = {output.id for output in self.outputs}
        for place, question in enumerate(self.questions):
            for at, name in enumerate(question.required_for):
                if name not in known:
                    field_name = f"questions[{place}].required_for[{at}]"
                    raise ConfigError(field_name, f"there is no output {shown(name)}")


def _check_ids(name: str, ids: list[str]) -> None:
    seen: dict[str, int] = {}
    for place, each in enumerate(ids):
        if each in seen:
            problem = f"{shown(each)} is the id of {name}[{seen[each]}], too; give each its own"
            raise ConfigError(f"{name}[{place}].id", problem)
        seen[each] = place
