"""What happened in a round, without what is different each time: ids, counts and times."""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from harness_actors.messages import Message, ToolCall

SHOWN_CHARS = 80
"""Of the arguments of a call, where a stall is told."""


class MadeCall(NamedTuple):
    """A call with what came of it.

    Attributes:
        tool: Its name.
        written: Its arguments, or their beginning, as the model wrote them.
        did: The same for calls of one tool with equal arguments and equal results.
        failed: It brought an error, or was not made.
    """

    tool: str
    written: str
    did: bytes
    failed: bool

    @property
    def shown(self) -> str:
        """The call, for a reader."""
        written = self.written
        short = written if len(written) <= SHOWN_CHARS else f"{written[:SHOWN_CHARS]}…"
        return f"{self.tool}({short})"


class Round(NamedTuple):
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
    did: tuple[bytes, ...]


def round_of(
    answer: Message, results: Mapping[str, Message], polled: Collection[str] = ()
) -> Round:
    """What happened in a round.

    Args:
        answer: The message of the model.
        results: Those of its calls, by their ids; of those that wait there is none.
        polled: Names of the tools that are meant to be asked again and again: how a job is, say.
    """
    return round_with(answer, answer.tool_calls, results, polled)


def round_with(
    answer: Message,
    asked: Sequence[ToolCall],
    results: Mapping[str, Message],
    polled: Collection[str],
) -> Round:
    """See `round_of`; for whoever has read the calls of the message already."""
    calls = tuple([_made(call, results.get(call.id)) for call in asked if call.name not in polled])
    did = tuple([call.did for call in calls])
    return Round(calls, len(calls) < len(asked), _digest(answer.text.strip()), did)


def _made(call: ToolCall, result: Message | None) -> MadeCall:
    written, failed = call.arguments, result is not None and result.is_error
    came = "" if result is None else f"{failed}\0{result.text}"
    did = f"{call.name}\0{call.comparable_arguments() or written}\0{came}"
    return MadeCall(call.name, written[: SHOWN_CHARS + 1], _digest(did), failed)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="replace"), digest_size=16).digest() if text else b""
