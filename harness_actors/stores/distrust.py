"""Connections to files that somebody else may have made, to harm whoever opens them."""

import sqlite3
import sys

_LONGEST_BYTES = 128 << 20
"""Longest row: the program of a run, pickled, is the longest."""

_STEP = 1_000_000
"""Instructions of SQLite between two looks at what a reading has cost: some 10 ms."""
_FREE_STEPS = 50_000_000
_STEPS_PER_BYTE = 8
"""The dearest reading takes less than one instruction for each byte of a sound file."""


def connect(
    database: str, *, busy_s: float = 5.0, shared: bool = False, torn: bool = False
) -> sqlite3.Connection:
    """A connection in no transaction that runs nothing of what stands in the file's schema.

    `schema.check_schema` refuses what could be run; this holds from before that is read.

    Args:
        database: A ``file:`` URI.
        busy_s: How long to wait for locks of other processes, in seconds.
        shared: Several threads use it, one at a time.
        torn: The file may be shorter than it says, and is read all the same.
    """
    connection = sqlite3.connect(
        database, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=not shared
    )
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, not torn)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    connection.execute("PRAGMA trusted_schema = OFF")
    if torn:
        connection.execute("PRAGMA writable_schema = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_BYTES)
    return connection


def bound_steps(connection: sqlite3.Connection, file_bytes: int) -> None:
    """Let a reading take as long as a sound file of a size may need, and no longer.

    Pages that name each other in circles are read for ever, and larger files are not checked
    for them. Too many instructions are an `sqlite3.OperationalError`, ``interrupted``.

    Args:
        connection: One that reads.
        file_bytes: What the file takes on the disk, its log included.
    """
    left = (_FREE_STEPS + _STEPS_PER_BYTE * file_bytes) // _STEP

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(stop, _STEP)
