"""Marks, by which a journal and its write-ahead log know each other.

SQLite applies whatever log lies beside a file. Where the file was replaced meanwhile, by a
copy of an earlier time or by another journal, that mixes the two. So a log begins with the
mark that the file has then, and names each that the file can have while the log is beside it:
a file with any other is not the one that this log belongs to.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.stores.distrust import connect
from harness_actors.stores.traceless import beside
from harness_actors.stores.transactions import transaction

LOG_BYTES = 4 * 1024 * 1024
"""Size of the log from which on it is moved into the file, as SQLite's own default is."""

UNMARKED = b""
"""Stands for the mark of a file that has no table of marks: it is of an earlier version."""
LOOKS = 10
"""How often a file is looked at before it is refused."""
BETWEEN_LOOKS_S = 0.02


def check_marks(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file beside which the log of another one lies.

    Args:
        path: The file.
        connection: One that reads it with its log.

    Raises:
        StoreError: The log belongs to another file, or to this one as it was at another time.
        sqlite3.Error: It cannot be read.
    """
    log = beside(path, "-wal")
    if not _size(log):
        return
    # Before the file: a reader keeps its log from being moved into the file any further.
    try:
        named = {mark for (mark,) in connection.execute("SELECT mark FROM marks")}
    except sqlite3.OperationalError:
        return  # of an earlier version
    for _ in range(LOOKS):
        mark = _mark_of_file(path)
        if mark is None or mark in named:
            return
        # Another process may be moving the log into the file just now, page by page.
        time.sleep(BETWEEN_LOOKS_S)
    problem = (
        f"it was replaced while its write-ahead log {log.name!r} stayed beside it: that belongs to "
        "another file, or to this one as it was at another time. They would mix, so nothing "
        "was read or changed; put back the file that the log belongs to, or the log of this "
        f"file, or remove {str(log)!r} to go on with what this file holds alone"
    )
    raise StoreError(str(path), problem)


def move_log(path: Path, connection: sqlite3.Connection, *, truncate: bool) -> bool:
    """Move the log into the file, as far as readers let it, and begin the next one.

    Args:
        path: The file.
        connection: One that writes, and does not do this by itself.
        truncate: Make the log's file small, too.

    Returns:
        Whether the log's file is written from its beginning again.

    Raises:
        StoreError: The file was replaced; nothing was moved into it.
        sqlite3.Error: It cannot be read or written.
    """
    with transaction(connection, "IMMEDIATE"):
        check_marks(path, connection)
        # A copy of the file that is made while only a part was moved has a mark of its own.
        made = connection.execute("INSERT INTO marks (mark) VALUES (randomblob(16))").lastrowid
    mode = "TRUNCATE" if truncate else "PASSIVE"
    _, pages, moved = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    # Both are -1 where another process moves the log just now, maybe only as far as an older mark.
    if pages != moved or moved < 0:
        return False
    log = beside(path, "-wal")
    before = _size(log)
    with transaction(connection, "IMMEDIATE"):
        connection.execute("DELETE FROM marks WHERE id < ?", (made,))
        # The first page, too: it says where the marks are, so that the log tells it by itself.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version = {version}")
    return truncate or _size(log) <= before


def leave_log(path: Path, connection: sqlite3.Connection) -> None:
    """Close the last connection to a file, and leave its log as it is."""
    # The last one that may write moves it; one that only reads does not.
    with closing(_opened(path, "mode=ro")) as last:
        last.execute("SELECT term FROM terms").fetchone()
        connection.close()


def _mark_of_file(path: Path) -> bytes | None:
    """The newest mark of a file without its log; None where that cannot be told."""
    # One into which its log was moved in part may be shorter than it says.
    with closing(_opened(path, "mode=ro&immutable=1", torn=True)) as alone:
        try:
            found = alone.execute("SELECT mark FROM marks ORDER BY id DESC LIMIT 1").fetchone()
        except sqlite3.OperationalError as error:
            return UNMARKED if "no such table" in str(error) else None
        except sqlite3.Error:
            return None
    return None if found is None else found[0]


def _opened(path: Path, how: str, *, torn: bool = False) -> sqlite3.Connection:
    return connect(f"{path.resolve().as_uri()}?{how}", torn=torn)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0
