"""The messages of a conversation, each encoded once for the wire and the journal."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import orjson

from harness_actors.errors import WorkflowError
from harness_actors.exact_json import values_in

Role = Literal["system", "user", "assistant", "tool"]

Failure = Literal["failed", "timed_out", "denied", "refused", "unknown"]
"""What became of a call that has no success: its tool failed; it was stopped, for its time or its
run's was up; its user, or whoever stands in, did not want it; it was not made; it was cut off
before it could report."""
FAILURES: tuple[Failure, ...] = get_args(Failure)
Disposition = Literal["done", "waiting"] | Failure
"""What became of a call; `waiting` are those without a result."""


_in_order = json.JSONEncoder(sort_keys=True).encode
ROOM_BYTES = 4096
COMPARED_CHARS = 10_000
"""Characters above which the arguments of two calls are not compared as values."""
MOST_BITS = 63
"""Bits of the largest whole number that every reader of JSON gives back as it was."""
MOST_LEVELS = 100
"""Nesting of lists and mappings in users' data, at most: pickling gives up at some 490."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asked for."""

    id: str
    name: str
    arguments: str
    """The arguments as the model wrote them; meant to be a JSON object, not always one."""

    def comparable_arguments(self) -> str | None:
        """The arguments as a text that is the same for equal values, whatever order and spaces.

        Returns:
            None where they are no JSON, or have more than `COMPARED_CHARS` characters.
        """
        if len(self.arguments) > COMPARED_CHARS:
            return None
        try:
            # Whole numbers exactly: rounded, two of them would be one.
            values = values_in(self.arguments)
            try:
                return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode()
            except TypeError:
                return _in_order(values)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """What a change says of a message that it adds. It is no part of the conversation: a log
    drops it.

    Attributes:
        traceback: Of a call that failed in code of a user: where.
        limit: Of a call that a bound of its run stopped, or did not let begin: which.
        finish_reason: Of an answer that the model did not end by itself: why it stopped.
    """

    traceback: str = ""
    limit: str = ""
    finish_reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.traceback or self.limit or self.finish_reason)


NO_FACTS = MessageFacts()


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    It holds the bytes that go to the provider and into the journal; the text and
    the calls are read from them when somebody asks, so that a message which only
    travels is never parsed.
    """

    role: Role
    encoded: bytes
    """One JSON object in the Chat Completions format, UTF-8."""
    tokens: int
    """What this message adds to a request, in tokens of the model at hand or an estimate."""
    is_error: bool = False
    """Of tool results only: the call failed. Not part of `encoded`."""
    failure: Failure | None = None
    """Of such a one: how. None where it did not fail, and in what earlier versions recorded."""
    facts: MessageFacts = field(default=NO_FACTS, compare=False)
    by_harness: bool = field(default=False, compare=False)
    """Of user messages only: the harness says it, and not the user. Not part of `encoded`, and not
    known of what earlier versions recorded."""

    @classmethod
    def system(cls, text: str, *, tokens: int | None = None) -> "Message":
        return cls._encode({"role": "system", "content": text}, tokens)

    @classmethod
    def user(cls, text: str, *, tokens: int | None = None) -> "Message":
        return cls._encode({"role": "user", "content": text}, tokens)

    @classmethod
    def told(cls, text: str, *, tokens: int | None = None) -> "Message":
        """What the harness says to the model, as a user message."""
        return replace(cls.user(text, tokens=tokens), by_harness=True)

    @classmethod
    def assistant(
        cls, text: str | None, calls: Sequence[ToolCall] = (), *, tokens: int | None = None
    ) -> "Message":
        body: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            body["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in calls
            ]
        elif text is None:
            # Providers refuse an assistant message with neither text nor calls.
            body["content"] = ""
        return cls._encode(body, tokens)

    @classmethod
    def tool_result(
        cls,
        call_id: str,
        text: str,
        *,
        is_error: bool = False,
        failure: Failure | None = None,
        tokens: int | None = None,
        facts: MessageFacts = NO_FACTS,
        images: Sequence[str] = (),
    ) -> "Message":
        """The result of a call.

        Args:
            call_id: The call.
            text: For the model.
            is_error: It failed.
            failure: How; None of an error is that its tool failed.
            tokens: What it adds to a request; None estimates it.
            facts: What is told of it with the change that adds it.
            images: Images that belong to it, as URLs.
        """
        content: Any = text
        if images:
            parts = [{"type": "image_url", "image_url": {"url": url}} for url in images]
            content = [{"type": "text", "text": text}, *parts]
        encoded = encode_json({"role": "tool", "tool_call_id": call_id, "content": content})
        if tokens is None:
            tokens = estimate_tokens(encoded)
        if is_error and failure is None:
            failure = "failed"
        return cls("tool", encoded, tokens, failure is not None, failure, facts)

    @classmethod
    def from_wire(cls, body: dict[str, Any], *, tokens: int | None = None) -> "Message":
        """A message from its Chat Completions object, kept as it is."""
        return cls._encode(body, tokens)

    @classmethod
    def _encode(cls, body: dict[str, Any], tokens: int | None) -> "Message":
        encoded = encode_json(body)
        if tokens is None:
            tokens = estimate_tokens(encoded)
        return cls(body["role"], encoded, tokens)

    @cached_property
    def body(self) -> dict[str, Any]:
        """The Chat Completions object; do not change it."""
        body: dict[str, Any] = orjson.loads(self.encoded)
        return body

    @property
    def text(self) -> str:
        """The text, with the text parts of a list joined; empty where there is none."""
        content = self.body.get("content")
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content)
        return content or ""

    @property
    def images(self) -> tuple[str, ...]:
        """The URLs of the images in a list of parts."""
        content = self.body.get("content")
        parts = content if isinstance(content, list) else ()
        return tuple(part["image_url"]["url"] for part in parts if part.get("type") == "image_url")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            [
                ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in self.body.get("tool_calls") or ()
            ]
        )

    @property
    def tool_call_id(self) -> str | None:
        """The call that this result answers; None for other roles."""
        return self.body.get("tool_call_id")

    @property
    def disposition(self) -> Disposition | None:
        """What became of the call that this result answers; None for other roles, and for an
        error that an earlier version recorded, which did not say."""
        if self.role != "tool":
            return None
        return self.failure if self.is_error else "done"

    def without_facts(self) -> "Message":
        """The message as a log keeps it."""
        return replace(self, facts=NO_FACTS) if self.facts else self

    def __reduce__(self) -> tuple[Any, ...]:
        # Without this, a parsed body would travel beside the bytes it was read from.
        told: tuple[Any, ...] = (self.failure, self.facts) if self.facts else ()
        if self.by_harness:
            told = (self.failure, self.facts, True)
        if self.failure and not told:
            told = (self.failure,)
        return (Message, (self.role, self.encoded, self.tokens, self.is_error, *told))


def estimate_tokens(encoded: bytes) -> int:
    """Tokens of short texts that the harness writes itself: four bytes each, at least 1."""
    return max(1, len(encoded) // 4)


def encode_json(value: Any, *, indent: bool = False) -> bytes:
    """JSON bytes of a plain value; what is not valid Unicode is replaced, never raised.

    Tools read file names and process output, in which lone surrogates occur. Numbers above 64
    bits are rounded, and what is none becomes null.

    Args:
        value: The value.
        indent: In lines, for people.
    """
    option = orjson.OPT_INDENT_2 if indent else 0
    try:
        encoded = orjson.dumps(value, option=option)
    except TypeError:
        encoded = orjson.dumps(_well_formed(value), option=option)
    # What orjson returns goes on holding the room that it began with, some 4 KB for whatever is
    # shorter [m]; and messages stay for as long as their run.
    return bytes(memoryview(encoded)) if len(encoded) < ROOM_BYTES else encoded


def check_plain(name: str, value: Mapping[str, Any]) -> None:
    """Refuse what the journal could not keep, or no message carry.

    Raises:
        WorkflowError: `value` holds something that is no JSON value, or is nested too deep.
    """
    if is_too_deep(value):
        raise WorkflowError(name, f"its data must be nested {MOST_LEVELS} levels deep at most")
    try:
        json.dumps(dict(value))
    except (TypeError, ValueError) as error:
        raise WorkflowError(name, f"its data must be plain JSON values: {error}") from None


def is_too_deep(value: object, levels: int = MOST_LEVELS) -> bool:
    """Whether lists and mappings are nested in one another in more levels than so many."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(is_too_deep(item, levels - 1) for item in inner)


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {_well_formed(key): _well_formed(item) for key, item in value.items()}
        case list() | tuple():
            return [_well_formed(item) for item in value]
        case int() if value.bit_length() > MOST_BITS:
            return float(value) if value.bit_length() < sys.float_info.max_exp else None
        case _:
            return value
