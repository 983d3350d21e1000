"""What happened in a round, without what is different each time: ids, counts and times."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from harness_actors.messages import Message, ToolCall

SHOWN_CHARS = 80
"""Of the arguments of a call, where a stall is told."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call with what came of it.

    Attributes:
        tool: Its name.
        shown: The call, for a reader.
        asked: The same for calls of one tool with equal arguments.
        result: The same for equal results; empty where there is none.
        failed: It brought an error, or was not made.
    """

    tool: str
    shown: str
    asked: bytes
    result: bytes
    failed: bool


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of a model, and what came of it.

    Attributes:
        calls: Its calls, but for those whose answer changes by itself.
        polls: It has such calls.
        words: The same for equal texts; empty where the model said nothing.
        did: What was called and came of it, to be compared with other rounds.
    """

    calls: tuple[MadeCall, ...]
    polls: bool
    words: bytes
    did: tuple[tuple[bytes, bytes], ...]


def round_of(
    answer: Message, results: Mapping[str, Message], polled: Collection[str] = ()
) -> Round:
    """What happened in a round.

    Args:
        answer: The message of the model.
        results: Those of its calls, by their ids; of those that wait there is none.
        polled: Names of the tools that are meant to be asked again and again: how a job is, say.
    """
    asked = answer.tool_calls
    calls = tuple([_made(call, results.get(call.id)) for call in asked if call.name not in polled])
    did = tuple([(call.asked, call.result) for call in calls])
    return Round(calls, len(calls) < len(asked), _digest(answer.text.strip()), did)


def _made(call: ToolCall, result: Message | None) -> MadeCall:
    written = call.arguments
    shown = written if len(written) <= SHOWN_CHARS else f"{written[:SHOWN_CHARS]}…"
    return MadeCall(
        tool=call.name,
        shown=f"{call.name}({shown})",
        asked=_digest(f"{call.name}\0{call.comparable_arguments() or written}"),
        result=b"" if result is None else _digest(f"{result.is_error}\0{result.text}"),
        failed=result is not None and result.is_error,
    )


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="replace"), digest_size=16).digest() if text else b""
