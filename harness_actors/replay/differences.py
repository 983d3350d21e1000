"""What a rerun did otherwise than its journal says."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness_actors.events import ExecutorLost, encode_event
from harness_actors.messages import Message
from harness_actors.records import Hop, RunChanged, StoredChange
from harness_actors.replay.old_records import answers_in
from harness_actors.replay.visits import NOT_OF_RUNS
from harness_actors.results import HarnessResult
from harness_actors.signals import encode_signal
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    ASKED_BELOW,
    TURN_BEGAN,
    USAGE,
    WAITED_S,
    WAITING_SINCE,
    StateDelta,
    Write,
)

SHOWN_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that differs.

    Attributes:
        where: Which change of the run, and whose.
        what: Which part of it.
        journal: What the journal has; empty for nothing.
        rerun: What came now; empty for nothing.
    """

    where: str
    what: str
    journal: str
    rerun: str


def of_changes(
    where: str, stored: StoredChange, made: RunChanged, *, pool: str = ""
) -> Iterator[Difference]:
    """What differs between a change of the journal and the one made in its place.

    Args:
        where: Which change of the run, and whose.
        stored: That of the journal.
        made: The other one.
        pool: Whose actors served the run; empty where it had no pool of its own.
    """
    yield from _of_messages(where, stored.delta.messages, made.delta.messages)
    pairs = {
        "where it goes on": (_hop(stored.hop), _hop(made.hop)),
        "events": (_events(stored.delta, pool), _events(made.delta, pool)),
        "state": (_writes(stored.delta), _writes(made.delta)),
    }
    for what, (journal, rerun) in pairs.items():
        if _plain(journal) != _plain(rerun):
            yield Difference(where=where, what=what, journal=_shown(journal), rerun=_shown(rerun))


def of_ends(journal: HarnessResult | None, rerun: HarnessResult | None) -> Iterator[Difference]:
    """What differs between two endings; times are left out."""
    left, right = _end(journal), _end(rerun)
    for what in sorted({*left, *right}):
        if left.get(what) != right.get(what):
            yield Difference(
                where="the end",
                what=what,
                journal=_shown(left.get(what)),
                rerun=_shown(right.get(what)),
            )


def _of_messages(
    where: str, stored: tuple[Message, ...], made: tuple[Message, ...]
) -> Iterator[Difference]:
    for place in range(max(len(stored), len(made))):
        left = stored[place] if place < len(stored) else None
        right = made[place] if place < len(made) else None
        if not _are_same(left, right):
            what = f"message {place + 1} ({(left or right).role})"  # type: ignore[union-attr]
            yield Difference(where=where, what=what, journal=_text(left), rerun=_text(right))


def _are_same(stored: Message | None, made: Message | None) -> bool:
    if stored is None or made is None:
        return stored is made
    if stored.is_error and stored.failure is None:
        # Recorded by an earlier version, which did not say how a call failed.
        made = replace(made, failure=None)
    elif stored.facts.limit != made.facts.limit:
        return False
    return stored == made


def _text(message: Message | None) -> str:
    if message is None:
        return ""
    error = f" ({message.failure or 'error'})" if message.is_error else ""
    return _cut(f"{message.encoded.decode()}{error}, {message.tokens} tokens")


def _hop(hop: Hop | None) -> Any:
    if hop is None:
        return None
    plain = {"to": hop.to, **encode_signal(hop.signal)}
    return {**plain, "error": _untraced(plain["error"])} if plain.get("error") else plain


def _events(delta: StateDelta, pool: str) -> list[dict[str, Any]]:
    # Which hosts a cell has, and how many, is no part of what happened in the run.
    return [
        {**encode_event(event), "executor": _kind_of(event.executor, pool)}
        if isinstance(event, ExecutorLost)
        else _untraced(encode_event(event))
        for event in delta.events
    ]


def _kind_of(host: str, pool: str) -> str:
    kind = host.partition("[")[0]
    return AGENT_TURN if kind == pool else kind


def _untraced(plain: Mapping[str, Any]) -> dict[str, Any]:
    # Where a user's code failed; in a rerun it is not run.
    return {name: value for name, value in plain.items() if name != "traceback"}


def _writes(delta: StateDelta) -> list[tuple[str, str, Any]]:
    writes: list[tuple[str, str, Any]] = [
        (write.key, write.change, _without_time(write))
        for write in delta.writes
        if write.key not in NOT_OF_RUNS and write.key not in (ANSWERS.name, ASKED_BELOW.name)
    ]
    answers = answers_in(delta)
    return writes + [(ANSWERS.name, "put", answer) for answer in answers.items()]


def _without_time(write: Write) -> Any:
    if write.key in (USAGE.name, TURN_BEGAN.name) and isinstance(write.value, Mapping):
        return {name: value for name, value in write.value.items() if name != "working_s"}
    if write.key in (WAITING_SINCE.name, WAITED_S.name):
        return write.value is not None
    return write.value


def _end(result: HarnessResult | None) -> dict[str, Any]:
    if result is None:
        return {"status": "not over"}
    usage = asdict(result.usage)
    del usage["working_s"]
    below = result.children_usage
    return {
        "status": result.status,
        "reason": result.reason.kind,
        "turns": result.turn_count,
        "answer": result.output_text,
        "verified": result.completion_verified,
        "output": result.output,
        "usage": usage,
        "usage of its children": None if below is None else asdict(below),
    }


def _plain(value: Any) -> str:
    # Tuples and lists are one thing in a journal.
    return json.dumps(value, sort_keys=True, default=repr)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return _cut(value if isinstance(value, str) else _plain(value))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
