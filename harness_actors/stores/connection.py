"""How the journal's file is opened, made or refused, and what a transaction is."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

from harness_actors.errors import StoreError
from harness_actors.stores.faults import damaged, foreign, is_locked
from harness_actors.stores.schema import check_schema, check_version, create_if_empty

_MAGIC = b"SQLite format 3\0"
_CHECKED_BYTES = 64 * 1024 * 1024
"""Larger files are not read whole on opening: 64 MB take some 50 ms."""
_RETRY_S = 0.05


def open_journal(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """A connection that writes; the file and its folder are made if they are missing.

    A file that is refused stays as it is, byte for byte.

    Args:
        path: The journal's file.
        busy_s: How long to wait for other processes, in seconds.

    Raises:
        StoreError: The file is no journal, of another version, or damaged.
        sqlite3.Error: SQLite cannot open it, or it stays locked.
        OSError: The file system refuses.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
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
    return connection


@contextmanager
def transaction(
    connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"]
) -> Iterator[None]:
    """All or nothing: committed at the end, taken back by any exception.

    Args:
        connection: One that is in no transaction.
        kind: `DEFERRED` reads one state of the file; `IMMEDIATE` writes, and is the
            only one that does until it ends.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended it already. Should this fail too, the first error is the
        # one to be told, and SQLite forgets the transaction when the file is next opened.
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def _open(path: Path, busy_s: float) -> sqlite3.Connection:
    _inspect(path, busy_s)
    connection = _connect(path, busy_s)
    try:
        create_if_empty(connection)
        check_schema(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would survive the death of a process, but not a loss of power.
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)


def _inspect(path: Path, busy_s: float) -> None:
    """Judge the file before SQLite may touch it: opening one can already change it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise foreign(path)
    check_version(path, _number(header, 68), _number(header, 60))
    if _beside(path, "-journal").exists():
        return  # another process makes the file, or died doing so: SQLite sorts it out
    # A log beside the file means that it is open elsewhere, or was when a process died;
    # without one, nothing at all need be locked or created for a look into the file.
    alone = not _beside(path, "-wal").exists()
    try:
        _look_inside(path, busy_s, alone=alone)
    except (StoreError, sqlite3.Error):
        if not (alone and _beside(path, "-wal").exists()):
            raise
        # Another process has opened it meanwhile: we may have seen half of a change.
        _look_inside(path, busy_s, alone=False)


def _look_inside(path: Path, busy_s: float, *, alone: bool) -> None:
    uri = f"{path.resolve().as_uri()}?{'mode=ro&immutable=1' if alone else 'mode=ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=busy_s)) as connection:
        check_schema(path, connection)
        if path.stat().st_size <= _CHECKED_BYTES:
            fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if fault != "ok":
                raise damaged(path, " ".join(fault.split()))


def _beside(path: Path, suffix: str) -> Path:
    # SQLite follows links before it names the files that go with one.
    real = path.resolve()
    return real.with_name(real.name + suffix)


def _number(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4], "big")
