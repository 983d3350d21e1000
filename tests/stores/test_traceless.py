"""A file is read in one state of it, whatever others do to it meanwhile."""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.traceless import read_traceless, size_of
from tests.stores.entries import a_round, added
from tests.stores.open_files import open_files


class Reading:
    """Reads the newest position; each time, something happens after it.

    Args:
        happenings: What, in the order of the readings; nothing when they are used up.
    """

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self._happenings = list(happenings)
        self.times = 0

    def __call__(self, connection: sqlite3.Connection) -> int:
        self.times += 1
        found = self.position(connection)
        if self._happenings:
            self._happenings.pop(0)()
        # Whatever happened, it is one state that is read.
        assert self.position(connection) == found
        return found

    def position(self, connection: sqlite3.Connection) -> int:
        found: int = connection.execute("SELECT max(position) FROM records").fetchone()[0]
        return found


def committed(path: Path, version: int) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [a_round(version)])
    journal.close()


def touched(path: Path) -> None:
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))


def fails() -> None:
    raise StoreError("it", "is damaged")


@pytest.fixture
def closed(path: Path) -> Path:
    """A journal with one change, that nobody has open."""
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    journal.close()
    return path


@pytest.fixture
def shared(closed: Path, journal: SqliteJournal) -> tuple[Path, SqliteJournal, int]:
    """The journal of `closed` while it is open, and its term."""
    return closed, journal, journal.begin_term()


def test_a_file_that_keeps_still_is_read_once_and_left_closed(closed: Path) -> None:
    reading = Reading()

    assert read_traceless(closed, reading, busy_s=0.0) == 2

    assert reading.times == 1
    assert open_files(closed.parent) == []


def test_what_was_changed_while_it_was_read_is_read_again(closed: Path) -> None:
    for happening in (lambda: touched(closed), lambda: replaced(closed)):
        reading = Reading(happening, happening)

        assert read_traceless(closed, reading, busy_s=10.0) == 2

        assert reading.times == 3


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def test_what_appears_beside_a_file_while_it_is_read_has_it_read_again(closed: Path) -> None:
    log = closed.with_name("runs.db-wal")
    reading = Reading(lambda: log.write_bytes(b"x" * 100), log.unlink)
    assert read_traceless(closed, reading, busy_s=10.0) == 2
    assert reading.times == 3
    # An empty log says nothing.
    reading = Reading(log.touch)
    assert read_traceless(closed, reading, busy_s=10.0) == 2
    assert reading.times == 1


def test_a_file_that_never_keeps_still_is_told_when_the_time_is_up(closed: Path) -> None:
    reading = Reading(*[lambda: touched(closed)] * 10_000)
    begun = time.monotonic()

    with pytest.raises(StoreError, match=r"it was changed while it was read, for 0\.3 s; try"):
        read_traceless(closed, reading, busy_s=0.3)

    assert time.monotonic() - begun >= 0.3
    assert reading.times > 1


@pytest.mark.parametrize("busy_s", [0.0, 0.3, 60.0])
def test_no_lock_is_waited_for_longer_than_was_said(closed: Path, busy_s: float) -> None:
    def waits_ms(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA busy_timeout").fetchone()[0])

    assert read_traceless(closed, waits_ms, busy_s=busy_s) == 1000 * busy_s
    journal = SqliteJournal(closed)
    assert read_traceless(closed, waits_ms, busy_s=busy_s) == 1000 * busy_s
    journal.close()


def test_an_error_counts_only_in_a_file_that_kept_still(closed: Path) -> None:
    def changes_and_fails() -> None:
        touched(closed)
        fails()

    reading = Reading(changes_and_fails, changes_and_fails)
    assert read_traceless(closed, reading, busy_s=10.0) == 2
    assert reading.times == 3

    reading = Reading(fails)
    with pytest.raises(StoreError, match="is damaged"):
        read_traceless(closed, reading, busy_s=10.0)
    assert reading.times == 1


def test_while_others_have_it_open_a_commit_disturbs_no_reading(
    shared: tuple[Path, SqliteJournal, int],
) -> None:
    path, journal, term = shared
    reading = Reading(lambda: journal.commit(term, [a_round(2)]))

    assert read_traceless(path, reading, busy_s=10.0) == 2
    assert read_traceless(path, reading, busy_s=10.0) == 3

    assert reading.times == 2


def test_nothing_is_moved_beneath_whoever_reads_what_others_have_open(
    shared: tuple[Path, SqliteJournal, int],
) -> None:
    path, journal, term = shared
    journal._writer.execute("PRAGMA busy_timeout = 0")

    def read(connection: sqlite3.Connection) -> tuple[int, ...]:
        (position,) = connection.execute("SELECT max(position) FROM records").fetchone()
        for version in range(2, 12):
            journal.commit(term, [a_round(version)])
            journal._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # Of pages that were not looked at before.
        (messages,) = connection.execute("SELECT count(*) FROM messages").fetchone()
        return position, messages

    assert read_traceless(path, read, busy_s=0.0) == (2, 3)
    assert journal.position() == 12


def test_while_others_move_its_log_it_is_read_again_as_long_as_there_is_time(
    shared: tuple[Path, SqliteJournal, int],
) -> None:
    path, _, _ = shared
    reading = Reading(lambda: touched(path))
    assert read_traceless(path, reading, busy_s=10.0) == 2
    assert reading.times == 2

    # What is read is in one piece all the same, so that no journal is too busy to be read.
    reading = Reading(*[lambda: touched(path)] * 10_000)
    begun = time.monotonic()
    assert read_traceless(path, reading, busy_s=0.3) == 2
    assert time.monotonic() - begun >= 0.3
    assert reading.times > 1


def test_while_others_have_it_open_an_error_must_be_seen_several_times(
    shared: tuple[Path, SqliteJournal, int],
) -> None:
    path, _, _ = shared
    for failing, seen in ((9, 10), (10, 10), (30, 10)):
        reading = Reading(*[fails] * failing)
        if failing < 10:
            assert read_traceless(path, reading, busy_s=60.0) == 2
        else:
            with pytest.raises(StoreError, match="is damaged"):
                read_traceless(path, reading, busy_s=60.0)
        assert reading.times == seen


def test_while_it_is_made_by_another_process_it_is_waited_for(closed: Path) -> None:
    undo = closed.with_name("runs.db-journal")
    made = threading.Timer(0.2, undo.unlink)

    def is_made() -> None:
        undo.write_bytes(bytes(600))
        made.start()

    for reading, times in ((Reading(is_made), 2), (Reading(), 1)):
        assert read_traceless(closed, reading, busy_s=10.0) == 2
        assert reading.times == times
        made.join()


def test_a_file_that_is_half_made_is_not_read_though_others_have_it_open(
    shared: tuple[Path, SqliteJournal, int],
) -> None:
    path, _, _ = shared
    path.with_name("runs.db-journal").write_bytes(bytes(600))

    with pytest.raises(StoreError, match="it was left half made"):
        read_traceless(path, Reading(), busy_s=10.0)


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_beside_a_journal_is_told(closed: Path, suffix: str, kind: str) -> None:
    beside = closed.with_name(closed.name + suffix)
    if kind == "pipe":
        os.mkfifo(beside)
    elif kind == "link":
        beside.symlink_to(closed)
    else:
        beside.mkdir()

    with pytest.raises(StoreError, match="it is not a file, and nothing that SQLite") as told:
        read_traceless(closed, Reading(), busy_s=10.0)

    assert told.value.path == str(beside)


def test_a_place_without_a_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="it is not a file; name the journal's file"):
        read_traceless(tmp_path / "pipe", Reading(), busy_s=10.0)
    with pytest.raises(IsADirectoryError):
        read_traceless(tmp_path, Reading(), busy_s=10.0)
    with pytest.raises(FileNotFoundError):
        read_traceless(tmp_path / "none", Reading(), busy_s=10.0)
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_a_reading_that_goes_in_circles_is_broken_off(closed: Path) -> None:
    circle = "WITH RECURSIVE it(n) AS (SELECT 1 UNION ALL SELECT n FROM it) SELECT sum(n) FROM it"

    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        read_traceless(closed, lambda connection: connection.execute(circle).fetchone(), busy_s=1.0)


def test_a_file_is_as_large_as_it_is_on_the_disk_with_its_log(closed: Path) -> None:
    alone = closed.stat().st_blocks * 512
    assert size_of(closed) == alone >= closed.stat().st_size
    log = closed.with_name("runs.db-wal")
    log.write_bytes(b"x" * 100_000)
    assert size_of(closed) == alone + log.stat().st_blocks * 512
    os.truncate(log, 1 << 40)
    assert size_of(closed) < alone + 200_000
    assert size_of(closed.with_name("none")) == 0


@pytest.mark.parametrize("open_elsewhere", [False, True])
def test_whoever_looks_cannot_write(
    closed: Path, open_elsewhere: bool, request: pytest.FixtureRequest
) -> None:
    if open_elsewhere:
        request.getfixturevalue("journal")
    before = closed.read_bytes()

    def write(connection: sqlite3.Connection) -> None:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("UPDATE terms SET term = 7")
        assert connection.in_transaction

    read_traceless(closed, write, busy_s=1.0)

    assert closed.read_bytes() == before
