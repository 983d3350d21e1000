"""How values become columns of the journal, and come back.

Only plain JSON is written, never code: whoever reads a journal unpickles nothing.
A packed value is deflated JSON (BLOB) or, where the value has what the fast encoder
refuses (integers beyond 64 bits, lone surrogates), JSON as it is (TEXT). A message is a
BLOB: its bytes as they are or, since version 2, deflated after one byte that no JSON
begins with.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any, TypeAlias

import orjson

from harness_actors.config import HarnessConfig
from harness_actors.events import Event, decode_event, encode_event
from harness_actors.messages import FAILURES, NO_FACTS, Failure, Message, MessageFacts
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.records import Hop, MadeWith, ParentLink, RunSpec, WorkspaceSpec
from harness_actors.results import HarnessResult, decode_result, encode_result
from harness_actors.signals import decode_signal, encode_signal
from harness_actors.state import StateDelta, Write
from harness_actors.stores.columns import mapping, number, text, whole
from harness_actors.stores.room import FREE_BYTES, LONGEST_BYTES, check_value, longest, take
from harness_actors.stores.vocabulary import MESSAGE_VOCABULARY, VOCABULARY

Packed: TypeAlias = bytes | str

# A change is some 400 bytes of JSON, nearly all of it names. Deflate with a vocabulary
# leaves a fifth of it. The small window and memory level make a copy of the prepared
# compressor cheap: 6 µs a change, against 93 µs with zlib's defaults.
_COMPRESSOR = zlib.compressobj(6, zlib.DEFLATED, -12, 5, zlib.Z_DEFAULT_STRATEGY, VOCABULARY)
_MESSAGE_COMPRESSOR = zlib.compressobj(
    6, zlib.DEFLATED, -12, 5, zlib.Z_DEFAULT_STRATEGY, MESSAGE_VOCABULARY
)

_FACTS = ("limit", "finish_reason")
"""Those facts of messages that are stored by their names."""
_DEFLATED = b"\x01"
_CHECKED_BYTES = 1 << 20
"""A shorter value takes less room than there is, whatever it holds."""
_LONG_BYTES = 8 * 1024
"""Longer messages repeat themselves over more than the small window: they get the large
one, whose preparation they are worth."""


def pack(value: Any) -> Packed:
    """A plain JSON value as a column.

    Raises:
        TypeError, ValueError, RecursionError: It is not a plain JSON value, or one that
            could not be unpacked again; see `room`.
    """
    try:
        text = orjson.dumps(value)
    except TypeError:
        plain = json.dumps(value, separators=(",", ":"))
        _check_room(plain.encode())
        return plain
    if len(text) > _CHECKED_BYTES:
        _check_room(text)
    compressor = _COMPRESSOR.copy()
    return compressor.compress(text) + compressor.flush()


def unpack(packed: Packed) -> Any:
    """What `pack` wrote.

    Raises:
        ValueError, zlib.error: The column is damaged, or too large to be real.
    """
    if isinstance(packed, str):
        take(check_value(packed.encode("utf-8", "surrogatepass")))
        return json.loads(packed)
    text = _inflate(packed, VOCABULARY)
    take(check_value(text))
    return orjson.loads(text)


def _inflate(deflated: bytes, vocabulary: bytes) -> bytes:
    # The largest window: it reads what any smaller one wrote.
    inflating = zlib.decompressobj(-15, zdict=vocabulary)
    most = longest()
    text = inflating.decompress(deflated, most + 1)
    if len(text) > most:
        del text  # which the error would hold
        raise ValueError("it unpacks to more than a journal of its size holds")
    if not inflating.eof:
        raise ValueError("a packed value is cut short")
    return text


def _check_room(text: bytes) -> None:
    if (cost := check_value(text)) > FREE_BYTES:
        raise ValueError(f"it would take {cost:,} bytes of memory; {FREE_BYTES:,} is most")


def pack_message(encoded: bytes) -> bytes:
    """The bytes of a message, deflated where that makes them fewer.

    Raises:
        ValueError: They are too many.
    """
    if len(encoded) > _LONG_BYTES:
        if len(encoded) >= LONGEST_BYTES:
            raise ValueError(f"a message has {len(encoded):,} bytes; {LONGEST_BYTES:,} is most")
        # Four times as fast as the usual level, for an eighth more bytes.
        compressor = zlib.compressobj(3, zlib.DEFLATED, -15)
    else:
        compressor = _MESSAGE_COMPRESSOR.copy()
    deflated = _DEFLATED + compressor.compress(encoded) + compressor.flush()
    # What begins like a deflated message, which no JSON does, must be deflated too.
    return deflated if len(deflated) < len(encoded) or encoded[:1] == _DEFLATED else encoded


def unpack_message(packed: bytes) -> bytes:
    """What `pack_message` wrote, or version 1 of the journal.

    Raises:
        TypeError: The column is no BLOB.
        ValueError, zlib.error: It is damaged, or too large to be real.
    """
    if not isinstance(packed, bytes):
        raise TypeError(f"a message is {type(packed).__name__}, and not bytes")
    if packed[:1] != _DEFLATED:
        take(len(packed))
        return packed
    # A vocabulary that a message was not deflated with does not disturb.
    encoded = _inflate(packed[1:], MESSAGE_VOCABULARY)
    take(len(encoded))
    return encoded


_OF_FAILURES: Mapping[Failure, int] = {name: 2 + place for place, name in enumerate(FAILURES)}
_FAILURES = {code: name for name, code in _OF_FAILURES.items()}
_BY_HARNESS = -1
"""In the same column, of user messages."""


def pack_failure(message: Message) -> int:
    """The column `is_error` of a message: 0 for none, else how the call failed; below 0 for what
    the harness says.

    Earlier versions wrote 1 for all errors.
    """
    if message.by_harness:
        return _BY_HARNESS
    return int(message.is_error) if message.failure is None else _OF_FAILURES[message.failure]


def with_failure(role: Any, encoded: bytes, tokens: int, packed: Any) -> Message:
    """The message of a row, with what its column `is_error` says."""
    if packed == _BY_HARNESS:
        return Message(role, encoded, tokens, by_harness=True)
    return Message(role, encoded, tokens, bool(packed), _FAILURES.get(packed))


def pack_delta(delta: StateDelta) -> Packed | None:
    """The writes and the events of a change; None where it has neither.

    Its messages are rows of their own. What their rows have no column for are further parts,
    where there is any: the tracebacks, each with the place of its message, and other facts.
    """
    further = _pack_facts(delta.messages)
    if not delta.writes and not delta.events and not further:
        return None
    writes = [(write.key, write.change, write.value) for write in delta.writes]
    events = [encode_event(event) for event in delta.events]
    return pack((writes, events, *further))


def _pack_facts(messages: Sequence[Message]) -> tuple[list[Any], ...]:
    placed = [
        (place, message.facts)
        for place, message in enumerate(messages)
        if message.facts is not NO_FACTS and message.facts
    ]
    if not placed:
        return ()
    traced = [(place, facts.traceback) for place, facts in placed if facts.traceback]
    others = [
        (place, {name: fact for name in _FACTS if (fact := getattr(facts, name))})
        for place, facts in placed
        if facts.limit or facts.finish_reason
    ]
    return (traced, others) if others else (traced,)


def unpack_writes(packed: Packed | None) -> tuple[Write, ...]:
    return () if packed is None else tuple(Write(*write) for write in unpack(packed)[0])


def unpack_events(packed: Packed | None) -> list[Event]:
    """The events of a change alone."""
    return [] if packed is None else [decode_event(event) for event in unpack(packed)[1]]


def unpack_delta(packed: Packed | None, messages: Sequence[Message]) -> StateDelta:
    """What `pack_delta` wrote, with the messages of its rows, each with its facts."""
    if packed is None:
        return StateDelta(messages=tuple(messages))
    writes, events, *further = unpack(packed)
    return StateDelta(
        tuple(Write(*write) for write in writes),
        _with_facts(messages, further),
        tuple(decode_event(event) for event in events),
    )


def _with_facts(messages: Sequence[Message], further: Sequence[Any]) -> tuple[Message, ...]:
    traced, others = (*further, (), ())[:2]
    facts = {place: {"traceback": text(traceback)} for place, traceback in traced}
    for place, told in others:
        known = {name: text(told[name]) for name in _FACTS if name in told}
        facts[place] = {**facts.get(place, {}), **known}
    found = list(messages)
    for place, named in facts.items():
        found[place] = replace(found[place], facts=MessageFacts(**named))
    return tuple(found)


def pack_plan(plan: CompactionPlan) -> Packed:
    return pack(plan.as_plain())


def pack_summary(summary: Summary) -> Packed:
    return pack(summary.as_plain())


def unpack_summary(packed: Packed) -> Summary:
    """What `pack_summary` wrote.

    Raises:
        ValueError: It is no such thing.
    """
    return Summary.from_plain(unpack(packed))


def unpack_plan(packed: Packed) -> CompactionPlan:
    """What `pack_plan` wrote.

    Raises:
        UnreadablePlanError: It is of a later version, or damaged.
    """
    return CompactionPlan.from_plain(unpack(packed))


def pack_hop(hop: Hop | None) -> Packed | None:
    return None if hop is None else pack({"to": hop.to, "signal": encode_signal(hop.signal)})


def unpack_hop(packed: Packed) -> Hop:
    plain = unpack(packed)
    return Hop(to=plain["to"], signal=decode_signal(plain["signal"]))


def pack_result(result: HarnessResult) -> Packed:
    return pack(encode_result(result))


def unpack_result(packed: Packed | None) -> HarnessResult | None:
    if packed is None:
        return None
    result = decode_result(unpack(packed))
    text(result.run_id), text(result.output_text), text(result.reason.message)
    whole(result.turn_count), number(result.wall_s), mapping(result.reason.details)
    for amount in astuple(result.usage):
        number(amount)
    return result


def pack_spec(spec: RunSpec) -> Packed:
    """The spec less its ids, its metadata and its task: these have columns or rows."""
    # A journal of an earlier version has none.
    made_with = {} if spec.made_with is None else {"made_with": asdict(spec.made_with)}
    late_hooks = {"late_hooks": True} if spec.late_hooks else {}
    parent = {} if spec.parent is None else {"parent": _plain_link(spec.parent)}
    return pack(
        {
            "code": spec.code,
            "config": spec.config.as_mapping(),
            "edges": spec.edges,
            "custom": spec.custom,
            "keys": spec.keys,
            "workspace": None if spec.workspace is None else _plain_workspace(spec.workspace),
            **made_with,
            **late_hooks,
            **parent,
        }
    )


def _plain_workspace(workspace: WorkspaceSpec) -> dict[str, Any]:
    plain = asdict(workspace)
    # As journals have it from before there were such.
    for newer in ("base", "read_only"):
        if not plain[newer]:
            del plain[newer]
    return plain


def _plain_link(link: ParentLink) -> dict[str, Any]:
    plain = asdict(link)
    # As journals have it from before there were such.
    for newer in ("background", "copied"):
        if not plain[newer]:
            del plain[newer]
    return plain


def unpack_spec(
    packed: Packed,
    *,
    run_id: str,
    conversation_id: str,
    task: Sequence[Message],
    metadata: Mapping[str, Any],
) -> RunSpec:
    plain = unpack(packed)
    workspace, made_with = plain["workspace"], plain.get("made_with")
    parent = plain.get("parent")
    return RunSpec(
        run_id=run_id,
        conversation_id=conversation_id,
        task=tuple(task),
        code=plain["code"],
        config=HarnessConfig.from_stored(plain["config"]),
        edges=tuple((start, end) for start, end in plain["edges"]),
        custom=tuple(plain["custom"]),
        keys=tuple(plain["keys"]),
        workspace=None if workspace is None else WorkspaceSpec(**workspace),
        metadata=metadata,
        made_with=None if made_with is None else MadeWith(**made_with),
        late_hooks=plain.get("late_hooks") is True,
        parent=None if parent is None else ParentLink(**parent),
    )
