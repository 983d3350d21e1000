"""How the journal's file is opened, made or refused."""

import sqlite3
import time
from contextlib import closing
from os import SEEK_END
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.stores.distrust import connect
from harness_actors.stores.faults import damage, damaged, is_locked
from harness_actors.stores.marks import check_marks, move_log
from harness_actors.stores.migrations import migrate
from harness_actors.stores.private import SHOWN_FOLDER, make_own_file
from harness_actors.stores.schema import check_header, check_schema, create_if_empty
from harness_actors.stores.traceless import beside, opening, read_traceless, size_of

_CHECKED_BYTES = 64 * 1024 * 1024
"""Larger files are not read whole on opening: 64 MB take some 50 ms."""
_RETRY_S = 0.05
_UNDO_BYTES = 1 << 20
"""The rollback journal of a file that is made has some pages."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""Ends a rollback journal that names another file, which SQLite reads and may remove.

Source: https://www.sqlite.org/fileformat2.html#the_rollback_journal, and `readSuperJournal`."""


def open_journal(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """A connection that writes; the file and its folder are made if they are missing.

    A file of an earlier version is brought up to the newest; see `migrations`. A file
    that is refused stays as it is, byte for byte.

    Args:
        path: The journal's file.
        busy_s: How long to wait for other processes, in seconds.

    Raises:
        StoreError: The file is not a journal, of another version, or damaged.
        sqlite3.Error: SQLite cannot open it, or it stays locked.
        OSError: The file system refuses.
    """
    path.parent.mkdir(SHOWN_FOLDER, parents=True, exist_ok=True)
    deadline = time.monotonic() + busy_s
    while True:
        # SQLite waits by itself for most locks, but not while another process
        # recovers the file or changes its mode.
        try:
            return _open(path, busy_s)
        except sqlite3.Error as error:
            if not is_locked(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)


def open_for_reading(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """A second connection to an open journal, which cannot write."""
    connection = _connect(path, busy_s)
    connection.execute("PRAGMA query_only = ON")
    # It is opened with the first reading, which may be long after the path was last looked at.
    connection.execute("SELECT term FROM terms").fetchone()
    return connection


def _open(path: Path, busy_s: float) -> sqlite3.Connection:
    _inspect(path, busy_s)
    with opening:
        return _open_checked(path, busy_s)


def _open_checked(path: Path, busy_s: float) -> sqlite3.Connection:
    # SQLite gives what it keeps beside the file the file's own mode.
    make_own_file(
        path.resolve(), beside(path, "-wal"), beside(path, "-shm"), beside(path, "-journal")
    )
    connection = _connect(path, busy_s)
    try:
        create_if_empty(connection)
        # At one moment: another process may bring the file up to its own version meanwhile.
        connection.execute("BEGIN")
        check_schema(path, connection)
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive the death of a process, but not a loss of power.
        connection.execute("PRAGMA synchronous = FULL")
        # By us instead, see `marks`.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        migrate(connection)
        move_log(path, connection, truncate=True)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    return connect(path.absolute().as_uri(), busy_s=busy_s, shared=True)


def check_file(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is not a journal, of another version, mixed or damaged, before it is used.

    Args:
        path: The file.
        connection: One that reads it and cannot change it.

    Raises:
        StoreError: The file is refused.
        sqlite3.Error: SQLite refuses it.
    """
    with damage(path):
        check_schema(path, connection)
        check_marks(path, connection)
    if size_of(path) <= _CHECKED_BYTES:
        fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise damaged(path, " ".join(fault.split()))


def _inspect(path: Path, busy_s: float) -> None:
    """Judge the file before SQLite may touch it: opening one can already change it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    if beside(path, "-journal").exists():
        # Another process makes the file, or died doing so, which SQLite sorts out; but
        # not in a file of somebody else.
        with closing(connect(f"{path.resolve().as_uri()}?immutable=1")) as bare:
            check_header(path, bare)
        _check_undo(path)
        return
    read_traceless(path, lambda connection: check_file(path, connection), busy_s=busy_s)


def _check_undo(path: Path) -> None:
    undo = beside(path, "-journal")
    try:
        with undo.open("rb") as file:
            size = file.seek(0, SEEK_END)
            file.seek(max(0, size - len(_SUPER_JOURNAL)))
            ours = size <= _UNDO_BYTES and file.read() != _SUPER_JOURNAL
    except FileNotFoundError:
        return  # it is made by now
    if not ours:
        problem = (
            f"{undo.name!r} beside it is none that this program leaves, and would change other "
            "files; remove it, or take a copy of the journal from whoever made it"
        )
        raise StoreError(str(path), problem)
