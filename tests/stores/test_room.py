"""What a journal unpacks to is bounded, and nothing real is near the bounds."""

import json
import os
import sqlite3
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.codec import pack, pack_message, unpack, unpack_message
from harness_actors.stores.room import (
    DEEPEST,
    FREE_BYTES,
    LONGEST_BYTES,
    PER_BYTE,
    longest,
    room_for,
    take,
)
from harness_actors.stores.write_ahead import has_commits
from tests.stores.entries import a_round, a_spec, added


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        "[{,]" * 5_000_000,
        "1,2,3\n" * 700_000,
        [["a,[", 'b"\\{'] * 1000] * 10,
        nested(200),
        [0.5] * 1_000_000,
    ],
    ids=[
        "a table of 20 MB in a string",
        "a million commas in a string",
        "strings of brackets",
        "200 levels",
        "a million numbers",
    ],
)
def test_what_is_large_and_real_comes_back(value: object) -> None:
    packed = pack(value)
    with room_for(len(packed)):
        assert unpack(packed) == value


@pytest.mark.parametrize(
    "value",
    [
        [[]] * 2_000_000,
        [0] * 2_000_000,
        "x" * (LONGEST_BYTES + 1),
        [2**64, "x" * LONGEST_BYTES],
    ],
    ids=[
        "two million lists",
        "two million numbers",
        "a long text",
        "a long text beside a large number",
    ],
)
def test_what_could_not_be_read_again_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="most"):
        pack(value)


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("beside", ["", ",[]", ',"[",{"b":[{}]}'])
def test_levels_that_break_whoever_takes_them_apart_are_not_read(
    opens: str, closes: str, beside: str
) -> None:
    def levels(count: int) -> str:
        """One value of so many levels, the outermost a list, with others beside it."""
        return f"[{opens * (count - 1)}0{closes * (count - 1)}{beside}]"

    assert unpack(levels(DEEPEST)) == json.loads(levels(DEEPEST))
    with pytest.raises(ValueError, match="a value has more than 254 levels"):
        unpack(levels(DEEPEST + 1))


def test_a_message_is_bounded_both_ways() -> None:
    with pytest.raises(ValueError, match="most"):
        pack_message(b"x" * LONGEST_BYTES)
    packed = pack_message(b"x" * (LONGEST_BYTES - 1))
    with room_for(len(packed)):
        assert len(unpack_message(packed)) == LONGEST_BYTES - 1
        unpack_message(packed)
        with pytest.raises(ValueError, match="more than a journal of its size holds"):
            unpack_message(packed)


SAID = b'{"role":"user","content":"%s"}'


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\x01",
        b"\x01" * 100,
        b"\x01" + os.urandom(9000),
        b"\x00",
        b"{}",
        SAID % b"Go on.",
        *(SAID % (b"word " * 2000)[: length - 28] for length in (8191, 8192, 8193)),
        SAID % os.urandom(20_000).hex().encode(),
    ],
    ids=lambda encoded: f"{len(encoded)} bytes",
)
def test_any_bytes_of_a_message_come_back_and_take_no_more_room(encoded: bytes) -> None:
    packed = pack_message(encoded)

    assert unpack_message(packed) == encoded
    assert len(packed) <= len(encoded) or encoded[:1] == b"\x01"
    assert len(packed) < 0.6 * len(encoded) or len(encoded) < 50 or encoded[:1] == b"\x01"


def test_what_is_cut_anywhere_is_damaged_and_not_shorter() -> None:
    value = pack({"said": ["ünïcode", 2**53, None] * 30})
    message = pack_message(SAID % (b"word " * 100))
    assert isinstance(value, bytes)
    for length in range(len(value)):
        with pytest.raises((ValueError, zlib.error)):
            unpack(value[:length])
    for length in range(1, len(message)):
        with pytest.raises((ValueError, zlib.error)):
            unpack_message(message[:length])


def test_a_message_that_is_no_bytes_is_damaged() -> None:
    for packed in ("{}", None, 7):
        with pytest.raises(TypeError, match=r"a message is .*, and not bytes"):
            unpack_message(packed)  # type: ignore[arg-type]


def test_each_reading_has_the_room_that_its_journal_gives_and_no_more() -> None:
    for _ in range(2):
        with room_for(0):
            assert longest() == LONGEST_BYTES
            take(FREE_BYTES - 10)
            assert longest() == 10
            with room_for(100):
                take(FREE_BYTES + 100 * PER_BYTE - 1)
                assert longest() == 1
                take(1)
                with pytest.raises(ValueError, match="more than a journal of its size holds"):
                    take(1)
                assert longest() == 0
            # The one around it is as it was.
            take(10)
            assert longest() == 0
            with pytest.raises(ValueError, match="more than a journal of its size holds"):
                take(1)
        # What belongs to no reading is bounded each by itself.
        for _ in range(2):
            assert longest() == LONGEST_BYTES
            take(FREE_BYTES)
            with pytest.raises(ValueError, match="more than a journal of its size holds"):
                take(FREE_BYTES + 1)


@pytest.mark.parametrize(
    ("plain", "problem"),
    [
        (b"[%b[]]" % (b"[]," * 2_000_000), "more than a journal of its size holds"),
        (b"[" * 255 + b"]" * 255, "a value has more than 254 levels"),
        (b'{"a":' * 255 + b"0" + b"}" * 255, "a value has more than 254 levels"),
    ],
    ids=["two million lists", "levels of lists", "levels of mappings"],
)
def test_what_would_not_be_written_is_not_read_either(plain: bytes, problem: str) -> None:
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflated.compress(plain) + deflated.flush()
    for stored in (packed, plain.decode()):
        with room_for(len(packed)), pytest.raises(ValueError, match=problem):
            unpack(stored)


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader])
def test_a_small_journal_that_unpacks_to_very_much_is_damaged(
    path: Path, opened: type[SqliteJournal] | type[JournalReader]
) -> None:
    journal = SqliteJournal(path)
    said = [a_round(version) for version in (1, 2)]
    journal.commit(journal.begin_term(), [added(), *said])
    journal.close()
    deflated = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = b"\x01" + deflated.compress(SAID % (b" " * (50 << 20))) + deflated.flush()
    assert len(bomb) < 60_000
    other = sqlite3.connect(path)
    other.execute("UPDATE messages SET encoded = ? WHERE tokens > 0", (bomb,))
    other.commit()
    other.close()
    broken = opened(path)

    with pytest.raises(StoreError, match=r"damaged; .* than a journal of its size holds"):
        broken.load_conversation("talk-of-run-1")

    broken.close()


def test_an_entry_that_is_too_large_is_refused_and_the_journal_goes_on(path: Path) -> None:
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])
    huge = replace(added(), spec=replace(a_spec("run-2"), metadata={"x": "y" * LONGEST_BYTES}))

    with pytest.raises(StoreError, match="run 'run-2' has a value"):
        journal.commit(term, [huge])

    assert journal.commit(term, [a_round(1)]) == [2]
    journal.close()


@pytest.fixture
def log(path: Path) -> Path:
    """The log of a journal whose process was killed; nothing else is beside the journal."""
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    names = (path.name, f"{path.name}-wal")
    files = {name: path.with_name(name).read_bytes() for name in names}
    journal.close()
    for name, data in files.items():
        path.with_name(name).write_bytes(data)
    return path.with_name(names[1])


def test_a_log_of_a_terabyte_of_holes_is_read_without_a_copy(log: Path, path: Path) -> None:
    os.truncate(log, 1 << 40)
    before = (sorted(path.parent.iterdir()), log.stat())

    assert JournalReader(path).position() == 2

    assert (sorted(path.parent.iterdir()), log.stat()) == before


@pytest.mark.parametrize(
    ("at", "bytes_there"),
    [
        (0, b"not of SQLite"),
        (24, b"\0\0\0\0"),
        (40, b"another salt"),
        (32, struct.pack(">I", 0)),
    ],
    ids=["no log", "a sum that is wrong", "frames of an earlier round", "a frame of no page"],
)
def test_a_log_that_commits_nothing_is_left_as_it_is(
    log: Path, path: Path, at: int, bytes_there: bytes
) -> None:
    data = bytearray(log.read_bytes())
    assert has_commits(log)
    data[at : at + len(bytes_there)] = bytes_there
    log.write_bytes(data)

    assert not has_commits(log)
    assert JournalReader(path).position() == 0
    assert log.read_bytes() == data
