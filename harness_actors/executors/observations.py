"""What one executor learned from elsewhere since its place began, and what is asked for again."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.errors import WorkflowError
from harness_actors.messages import MOST_LEVELS, is_too_deep

MOST_BYTES = 64 * 1024
"""Of one observation: its kind, its question and its answer as JSON."""
MOST_PLACE_BYTES = 1024 * 1024
"""Of all observations of one place: they travel with the run until it is over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an executor asks for, and in which place.

    Attributes:
        executor: Its name.
        kind: What sort of thing it wants to know.
        question: What exactly, as JSON with sorted keys.
        number: How often it has asked just that in its place, this time included.
    """

    executor: str
    kind: str
    question: str
    number: int

    def with_answer(self, answer: Any) -> tuple[dict[str, Any], str, int]:
        """As it is stored with an answer, that as JSON, and how many bytes all of it takes.

        Raises:
            WorkflowError: The answer is no plain JSON, or too large.
        """
        encoded = encoded_plain(self.executor, f"the answer of observation {self.kind!r}", answer)
        size = sum(len(part.encode()) for part in (self.kind, self.question, encoded))
        if size > MOST_BYTES:
            problem = (
                f"observes {self.kind!r} in {size:,} bytes, and {MOST_BYTES:,} is most; keep what "
                "is long elsewhere, and observe where that is"
            )
            raise WorkflowError(self.executor, problem)
        plain = {
            "kind": self.kind,
            "question": json.loads(self.question),
            "number": self.number,
            "answer": json.loads(encoded),
        }
        return plain, encoded, size


class Observations:
    """Those of the place that an executor is in.

    Args:
        executor: Its name.
        stored: Those that are on disk, as `with_answer` gives them.
    """

    def __init__(self, executor: str, stored: Iterable[Mapping[str, Any]]) -> None:
        self._executor = executor
        self._answers: dict[Asked, str] = {}
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._bytes = 0
        for plain in stored:
            asked = asked_of(executor, plain)
            _, self._answers[asked], size = asked.with_answer(plain["answer"])
            self._bytes += size

    def ask(self, kind: object, question: Any) -> Asked:
        """Ask once more.

        Raises:
            WorkflowError: The kind is no text, or the question no plain JSON.
        """
        if not isinstance(kind, str) or not kind:
            raise WorkflowError(self._executor, f"observes a kind that is no text: {kind!r}")
        encoded = encoded_plain(self._executor, f"the question of observation {kind!r}", question)
        self._numbers[kind, encoded] += 1
        return Asked(self._executor, kind, encoded, self._numbers[kind, encoded])

    def __contains__(self, asked: Asked) -> bool:
        return asked in self._answers

    def __getitem__(self, asked: Asked) -> Any:
        """What was answered; a value of one's own."""
        return json.loads(self._answers[asked])

    def take(self, asked: Asked, answer: Any) -> dict[str, Any]:
        """Take an answer that was made; how it is stored.

        Raises:
            WorkflowError: It is no plain JSON, or too large, or the place has too much of it.
        """
        plain, encoded, size = asked.with_answer(answer)
        if self._bytes + size > MOST_PLACE_BYTES:
            problem = (
                f"observes {asked.kind!r} in {size:,} bytes where it has observed {self._bytes:,} "
                f"before; in one place {MOST_PLACE_BYTES:,} is most"
            )
            raise WorkflowError(self._executor, problem)
        self._answers[asked] = encoded
        self._bytes += size
        return plain


def asked_of(executor: str, plain: Mapping[str, Any]) -> Asked:
    """What a stored observation answers."""
    question = json.dumps(plain["question"], sort_keys=True)
    return Asked(executor, plain["kind"], question, plain["number"])


def encoded_plain(executor: str, name: str, value: Any) -> str:
    """A value as JSON, with sorted keys.

    Raises:
        WorkflowError: It is no plain JSON value, or nested too deep.
    """
    if not (is_flat := _is_flat(value)) and is_too_deep(value):
        problem = f"{name} must be nested {MOST_LEVELS} levels deep at most"
        raise WorkflowError(executor, problem)
    try:
        if is_flat:
            # Most are, and read again they are what they were.
            return json.dumps(value, sort_keys=True)
        # Keys are texts before they are sorted, as they are when it is read again.
        as_read = json.loads(json.dumps(value, allow_nan=False))
        return json.dumps(as_read, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise WorkflowError(executor, f"{name} must be a plain JSON value: {error}") from None


_SIMPLE = frozenset((str, int, bool, type(None)))


def _is_flat(value: Any) -> bool:
    """Whether it is a text, a whole number and the like, or a list or a mapping of just these."""
    match value:
        case dict():
            return type(value) is dict and all(
                type(name) is str and type(one) in _SIMPLE for name, one in value.items()
            )
        case list() | tuple():
            return type(value) in (list, tuple) and all(type(one) in _SIMPLE for one in value)
    return type(value) in _SIMPLE
