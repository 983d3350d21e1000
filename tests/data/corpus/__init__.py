"""Recorded runs in journals, and what was in these when they were recorded."""

import gzip
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from harness_actors.events import encode_event, message_events
from harness_actors.messages import Message
from harness_actors.records import StoredChange
from harness_actors.replay import Recording
from harness_actors.results import encode_result
from harness_actors.signals import encode_signal

FOLDER = Path(__file__).parent


def journals() -> list[str]:
    """The names of what was recorded, a journal each."""
    return sorted(path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz"))


def unpack(journal: str, folder: Path) -> Path:
    """Write a journal into a folder; its path there."""
    store = folder / f"{journal}.db"
    store.write_bytes(gzip.decompress((FOLDER / f"{journal}.db.gz").read_bytes()))
    return store


@cache
def expected(journal: str) -> Mapping[str, Any]:
    """By the name of a run: all that `plain` said of it, and what its replay took as it was."""
    packed = (FOLDER / f"{journal}.json.gz").read_bytes()
    found: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return found


def write(journal: str, store: Path, found: Mapping[str, Any]) -> None:
    """Keep a journal under a name, with what is expected of it."""
    encoded = orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
    for kind, content in (("db", store.read_bytes()), ("json", encoded)):
        (FOLDER / f"{journal}.{kind}.gz").write_bytes(gzip.compress(content, 9, mtime=0))


def plain(recording: Recording) -> dict[str, Any]:
    """All that a recording holds, as plain values, so that it can be compared later."""
    spec = recording.spec
    found = {
        "conversation_id": spec.conversation_id,
        "task": [_message(message) for message in spec.task],
        "config": spec.config.as_mapping(),
        "edges": spec.edges,
        "custom": spec.custom,
        "metadata": spec.metadata,
        "added_at": recording.added_at,
        "changes": [_change(change) for change in recording.changes],
        "told": [encode_event(event) for event in message_events(recording.messages)],
        "others": [[at, *_message(message)] for at, message in recording.others],
        "end": None if recording.end is None else encode_result(recording.end),
    }
    # As whoever reads it from a file sees it.
    as_read: dict[str, Any] = orjson.loads(orjson.dumps(found))
    return as_read


def _change(change: StoredChange) -> dict[str, Any]:
    delta, hop = change.delta, change.hop
    return {
        "version": change.version,
        "at": change.at,
        "losses": change.losses,
        "messages": [_message(message) for message in delta.messages],
        "events": [encode_event(event) for event in delta.events],
        "writes": [[write.key, write.change, write.value] for write in delta.writes],
        "hop": None if hop is None else [hop.to, encode_signal(hop.signal)],
    }


def _message(message: Message) -> list[Any]:
    found = [message.role, message.encoded.decode(), message.tokens, message.is_error]
    # Earlier versions did not record it.
    if message.failure is not None or message.facts.finish_reason:
        facts = {name: fact for name, fact in asdict(message.facts).items() if fact}
        found += [message.failure, facts]
    return found
