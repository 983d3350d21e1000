"""Which calls of a schedule gates tell apart, and the moods that they have for them."""

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import orjson

from harness_actors.messages import Message, ToolCall

HEARD = ("done", "failed", "timed_out", "denied")
"""Dispositions of what a turn has brought about; others may be of calls that are only closed."""


def mood_of(seed: int, gate: str, what: str, moods: Sequence[str]) -> str:
    """How a gate decides: by what it is about alone, so whoever asks again is told the same.

    Args:
        seed: That of the schedule.
        gate: Which gate it is.
        what: What it is asked about: the key of a call, a run, or a turn.
        moods: Those that it has, each as often as it is chosen.
    """
    return moods[crc32(f"{seed}/{gate}/{what}".encode()) % len(moods)]


def has_place(key: str) -> bool:
    """Whether the key of a call says where in its run it is; others may come again."""
    return key.count("/") == 2


def key_in(arguments: Any) -> str | None:
    """The key of a call by its arguments; None of one that has no place of its own."""
    key = arguments.get("key") if isinstance(arguments, dict) else None
    return key if isinstance(key, str) and has_place(key) else None


def key_of(call: ToolCall) -> str | None:
    """The same, of a call as the model makes it."""
    try:
        return key_in(orjson.loads(call.arguments))
    except orjson.JSONDecodeError:
        return None


def results_in(log: Sequence[Message], added: int) -> Iterator[tuple[str, Message]]:
    """The results among the newest messages of a log that are of calls with a place.

    Args:
        log: The log.
        added: How many of its messages are looked at.
    """
    return ((key, result) for key, _, result in answered_in(log, added))


def answered_in(log: Sequence[Message], added: int) -> Iterator[tuple[str, ToolCall, Message]]:
    """The same, with the calls that they answer."""
    first = len(log) - added
    start = next((at for at in range(first - 1, -1, -1) if log[at].role == "assistant"), first)
    calls: dict[str | None, ToolCall] = {}
    for at in range(start, len(log)):
        message = log[at]
        if message.role == "assistant":
            calls = {call.id: call for call in message.tool_calls}
        elif message.role == "tool" and at >= first and message.tool_call_id in calls:
            call = calls[message.tool_call_id]
            key = key_of(call)
            if key is not None:
                yield key, call, message
