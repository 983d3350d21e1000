"""The file of a `RecordedModel`: questions to a model with their answers, a line each.

Messages and tools are named by digests; of each there is one line with its beginning, so
that a question that is missing can be told from those that are there. Keys are in no line:
a question holds the conversation and the tools, and nothing of the connection.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from harness_actors.errors import BadInputError
from harness_actors.messages import ToolCall, encode_json
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage

VERSION = 1
DIGEST_CHARS = 16
SHOWN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Question:
    """A request, by the digests of its parts.

    Attributes:
        messages: Of each message in its order.
        tools: Of the tools with all that the model is told of them.
    """

    messages: tuple[str, ...]
    tools: str

    @classmethod
    def of(cls, request: ModelRequest) -> "Question":
        digests = tuple(digest(message.encoded) for message in request.messages)
        return cls(digests, digest(request.tools.encoded))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A recorded answer.

    Attributes:
        response: The answer, without its waits.
        pieces: Its text as it was streamed; empty where it was not.
    """

    response: ModelResponse
    pieces: tuple[str, ...] = ()


class Cassette:
    """Reads and grows a file of questions and answers.

    Several processes may add to one file at once; of two answers to one question, the
    later one counts.

    Args:
        path: The file; missing, it is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = ""
        self._read_to = 0
        self._answers: dict[Question, Taken] = {}
        self._parts: dict[str, str] = {}

    def find(self, question: Question) -> Taken | None:
        """The answer to a question; looks at the file again where it is not known yet.

        Raises:
            BadInputError: The file is no cassette.
        """
        if question not in self._answers:
            self._read_on()
        return self._answers.get(question)

    def add(self, request: ModelRequest, taken: Taken, *, model: str) -> None:
        """Write down an answer.

        Raises:
            BadInputError: The file is no cassette; it is left as it is.
        """
        question = Question.of(request)
        self._read_on()
        if not self._read_to and self.path.exists() and self.path.stat().st_size:
            # One line without an end: each of ours is written whole.
            raise self._no_cassette("its first line has no end")
        lines: list[dict[str, Any]] = []
        if not self.model:
            lines.append({"cassette": VERSION, "model": model})
        for message, name in zip(request.messages, question.messages, strict=True):
            if name not in self._parts:
                said = message.text or ", ".join(call.name for call in message.tool_calls)
                self._parts[name] = shown = f"{message.role}: {said[:SHOWN_CHARS]}"
                lines.append({"part": name, "shows": shown})
        if question.tools not in self._parts:
            names = ", ".join(spec.name for spec in request.tools.specs) or "none"
            self._parts[question.tools] = shown = f"tools: {names}"
            lines.append({"part": question.tools, "shows": shown})
        lines.append(_plain(question, taken))
        self._append(b"".join(encode_json(line) + b"\n" for line in lines))

    def nearest(self, request: ModelRequest) -> str:
        """Which recorded question is the nearest to one that is missing, and what differs."""
        question = Question.of(request)
        if not self._answers:
            return f"{str(self.path)!r} holds no answer at all"
        nearest = max(self._answers, key=lambda known: _likeness(known, question))
        same = _common(nearest.messages, question.messages)
        if nearest.messages == question.messages:
            names = ", ".join(spec.name for spec in request.tools.specs) or "none"
            recorded = self._shows(nearest.tools)
            return f"the same messages are recorded with other tools: {recorded}; asked: {names}"
        recorded = (
            self._shows(nearest.messages[same]) if same < len(nearest.messages) else "no more"
        )
        asked = "no more"
        if same < len(request.messages):
            message = request.messages[same]
            calls = ", ".join(call.name for call in message.tool_calls)
            asked = f"{message.role}: {(message.text or calls)[:SHOWN_CHARS]}"
        return (
            f"the nearest of {len(self._answers)} is the same in {same} messages; "
            f"message {same + 1} is recorded as {recorded!r}, and asked is {asked!r}"
        )

    def _shows(self, part: str) -> str:
        return self._parts.get(part, "?").removeprefix("tools: ")

    def _append(self, text: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # One write: lines of processes that record at once do not mix.
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(file, text)
        finally:
            os.close(file)
        self._read_on()

    def _read_on(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # somebody is writing it just now
                self._take(line)
                self._read_to += len(line)

    def _take(self, line: bytes) -> None:
        try:
            plain = orjson.loads(line)
            if "cassette" in plain:
                self.model = plain["model"]
            elif not self._read_to:
                raise KeyError("cassette")
            elif "part" in plain:
                self._parts[plain["part"]] = plain["shows"]
            else:
                question = Question(tuple(plain["messages"]), plain["tools"])
                self._answers[question] = _taken(plain)
        except (orjson.JSONDecodeError, LookupError, TypeError) as error:
            raise self._no_cassette(f"{type(error).__name__}: {error}") from error

    def _no_cassette(self, why: str) -> BadInputError:
        return BadInputError(str(self.path), (f"is no cassette of a RecordedModel ({why})",))


def digest(encoded: bytes) -> str:
    """A short name of some bytes."""
    return hashlib.sha256(encoded).hexdigest()[:DIGEST_CHARS]


def _plain(question: Question, taken: Taken) -> dict[str, Any]:
    response = taken.response
    usage = {name: value for name, value in asdict(response.usage).items() if value}
    return {
        "messages": question.messages,
        "tools": question.tools,
        "text": response.text,
        "calls": [[call.id, call.name, call.arguments] for call in response.tool_calls],
        "finish_reason": response.finish_reason,
        "usage": usage,
        **({"pieces": taken.pieces} if taken.pieces else {}),
    }


def _taken(plain: dict[str, Any]) -> Taken:
    response = ModelResponse(
        text=plain["text"],
        tool_calls=tuple(ToolCall(*call) for call in plain["calls"]),
        finish_reason=plain["finish_reason"],
        usage=Usage(**plain["usage"]),
    )
    return Taken(response=response, pieces=tuple(plain.get("pieces", ())))


def _likeness(known: Question, asked: Question) -> tuple[int, bool, int]:
    same = _common(known.messages, asked.messages)
    return same, known.tools == asked.tools, -abs(len(known.messages) - len(asked.messages))


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    same = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        same += 1
    return same
