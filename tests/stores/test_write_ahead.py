"""A write-ahead log has commits or not, whoever wrote it on whatever machine."""

import sqlite3
import struct
from pathlib import Path

import pytest

from harness_actors.stores.write_ahead import has_commits

LITTLE, BIG = 0x377F0682, 0x377F0683
SALTS = (7, 9)

Frame = tuple[int, int]
"""Number of a page, and how many pages the file has after its commit; 0 is no commit."""


def a_log(
    *frames: Frame,
    magic: int = LITTLE,
    version: int = 3007000,
    page: int = 4096,
    salts: tuple[int, int] = SALTS,
    wrong: int = 0,
) -> bytes:
    """A log with a sound header, of frames with these salts.

    Source: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
    """
    head = struct.pack(">6I", magic, version, page, 0, *SALTS)
    words = struct.unpack("<6I" if magic == LITTLE else ">6I", head)
    first = second = 0
    for even, odd in (words[:2], words[2:4], words[4:]):
        first = (first + even + second) % 2**32
        second = (second + odd + first) % 2**32
    log = head + struct.pack(">2I", first, second ^ wrong)
    for number, after in frames:
        log += struct.pack(">6I", number, after, *salts, 0, 0) + bytes(page)
    return log


ONE, NOT_YET = (1, 1), (1, 0)


@pytest.mark.parametrize(
    "log",
    [
        a_log(ONE),
        a_log(NOT_YET, (2, 2)),
        a_log(NOT_YET, (2, 0), (3, 3), NOT_YET),
        a_log(ONE, magic=BIG),
        *(a_log(NOT_YET, (2, 2), page=1 << power) for power in range(9, 17)),
        # The page of the last one is written after its head.
        a_log(ONE)[:-4000],
    ],
)
def test_a_log_with_a_transaction_that_was_committed_has_one(path: Path, log: bytes) -> None:
    path.write_bytes(log)

    assert has_commits(path)


@pytest.mark.parametrize(
    "log",
    [
        b"",
        a_log()[:31],
        a_log(),
        a_log(NOT_YET, (2, 0)),
        a_log(NOT_YET, (0, 2)),
        a_log(NOT_YET, (0, 0), (2, 2)),
        a_log(ONE, salts=(7, 8)),
        a_log(ONE, salts=(6, 9)),
        a_log(NOT_YET) + a_log((2, 2), salts=(7, 8))[32:],
        a_log(ONE)[: 32 + 23],
        a_log(ONE, wrong=1),
        a_log(ONE, magic=LITTLE - 1),
        a_log(ONE, version=3007001),
        *(a_log(ONE, page=page) for page in (256, 1000, 1 << 17)),
        a_log(ONE, magic=BIG).replace(struct.pack(">I", BIG), struct.pack(">I", LITTLE), 1),
    ],
)
def test_a_log_that_is_unfinished_or_of_something_else_has_none(path: Path, log: bytes) -> None:
    path.write_bytes(log)

    assert not has_commits(path)


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_what_sqlite_writes_is_told_apart_like_that(tmp_path: Path, page: int) -> None:
    path = tmp_path / "some.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {page}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = 1")
    log = tmp_path / "some.db-wal"
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE some (x)")
    connection.executemany("INSERT INTO some VALUES (zeroblob(?))", [(page,)] * 50)
    assert log.stat().st_size > page, "nothing of it is written yet"
    assert not has_commits(log)

    connection.execute("COMMIT")

    assert has_commits(log)
    connection.close()
