"""What a journal unpacks to is bounded, and nothing real is near the bounds."""

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.codec import pack, pack_message, unpack, unpack_message
from harness_actors.stores.room import DEEPEST, LONGEST_BYTES, room_for
from harness_actors.stores.write_ahead import has_commits
from tests.stores.entries import a_round, a_spec, added


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    ["[{,]" * 5_000_000, [["a,[", 'b"\\{'] * 1000] * 10, nested(200), [0.5] * 1_000_000],
    ids=["a table of 20 MB in a string", "strings of brackets", "200 levels", "a million numbers"],
)
def test_what_is_large_and_real_comes_back(value: object) -> None:
    packed = pack(value)
    with room_for(len(packed)):
        assert unpack(packed) == value


@pytest.mark.parametrize(
    "value",
    [[[]] * 2_000_000, "x" * (LONGEST_BYTES + 1), [2**64, "x" * LONGEST_BYTES]],
    ids=["two million lists", "a long text", "a long text beside a large number"],
)
def test_what_could_not_be_read_again_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="most"):
        pack(value)


def test_levels_that_break_whoever_takes_them_apart_are_not_read() -> None:
    assert unpack("[" * DEEPEST + "]" * DEEPEST) == nested(DEEPEST)
    with pytest.raises(ValueError, match="a value has more than 254 levels"):
        unpack("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))


def test_a_message_is_bounded_both_ways() -> None:
    with pytest.raises(ValueError, match="most"):
        pack_message(b"x" * LONGEST_BYTES)
    packed = pack_message(b"x" * (LONGEST_BYTES - 1))
    with room_for(len(packed)):
        assert len(unpack_message(packed)) == LONGEST_BYTES - 1
        unpack_message(packed)
        with pytest.raises(ValueError, match="more than a journal of its size holds"):
            unpack_message(packed)


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
