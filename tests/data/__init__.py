"""Recorded conversations to test with."""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness_actors.messages import Message


@dataclass(frozen=True)
class Recorded:
    """A conversation as it was recorded.

    Attributes:
        id: Its name.
        messages: Its messages.
        open_at_end: It ends in a call without a result.
        ids_repeat: A call id is used again for a later call.
    """

    id: str
    messages: tuple[Message, ...]
    open_at_end: bool
    ids_repeat: bool


@cache
def recorded() -> tuple[Recorded, ...]:
    """All of them. Their README says where they come from."""
    with gzip.open(Path(__file__).parent / "conversations.jsonl.gz", "rt") as lines:
        return tuple(_read(json.loads(line)) for line in lines)


def _read(plain: dict[str, list[dict[str, object]]]) -> Recorded:
    kinds = {violation["kind"] for violation in plain["violations"]}
    return Recorded(
        id=str(plain["id"]),
        messages=tuple(Message.from_wire(message) for message in plain["messages"]),
        open_at_end="trailing_call_without_result" in kinds,
        ids_repeat="duplicate_call_id" in kinds,
    )


def shortened() -> dict[str, list[dict[str, Any]]]:
    """The messages of all 30 with shortened texts, by their names; see the README, too."""
    with gzip.open(Path(__file__).parent / "shortened.jsonl.gz", "rt") as lines:
        return {plain["id"]: plain["messages"] for plain in map(json.loads, lines)}
