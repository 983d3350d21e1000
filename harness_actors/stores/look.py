"""Reading a journal's file without leaving a trace, whoever else has it open or had."""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from errno import EISDIR
from os import strerror
from pathlib import Path
from stat import S_ISDIR
from threading import Lock
from typing import Generic, Self, TypeVar

from harness_actors.errors import StoreError

T = TypeVar("T")

_RETRY_S = 0.02
_SURE = 10
"""How often an error must be seen in a file that others have open: they may close and open
it again within one look, and an error is all that is seen of that."""

opening = Lock()
"""Held while a journal's index is open for reading alone, and by whoever opens a journal to
write: within a process SQLite opens the index once for all, so that a writer which came
upon a reader's could not write."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a journal at a moment, as far as they tell whether one was changed.

    Attributes:
        main: Inode, size and time of change of the journal itself.
        log: The same of its write-ahead log; None where there is none, or an empty one.
        index: Whether the log's index is there, which processes that have it open share.
        undo: As `log`, of the rollback journal that a file has while it is being made.
    """

    main: tuple[int, int, int]
    log: tuple[int, int, int] | None
    index: bool
    undo: tuple[int, int, int] | None

    @classmethod
    def of(cls, path: Path) -> Self:
        """Those of a path without links.

        Raises:
            FileNotFoundError: There is no journal.
            IsADirectoryError: There is a folder.
        """
        stat = path.stat()
        if S_ISDIR(stat.st_mode):
            raise IsADirectoryError(EISDIR, strerror(EISDIR), str(path))
        return cls(
            (stat.st_ino, stat.st_size, stat.st_mtime_ns),
            _signature(beside(path, "-wal")),
            beside(path, "-shm").exists(),
            _signature(beside(path, "-journal")),
        )

    @property
    def shared(self) -> bool:
        """SQLite's locks keep what is read in one piece."""
        return self.index and self.undo is None


def look(path: Path, read: Callable[[sqlite3.Connection], T], *, busy_s: float) -> T:
    """Read a file in one state of it; nothing is written, created or locked for others.

    Args:
        path: An existing file.
        read: Does the reading, in one transaction. It may be called again, where
            somebody changed the file meanwhile in a way that locks did not prevent.
        busy_s: How long to try again, in seconds.

    Raises:
        StoreError: From `read`, or the file never kept still.
        sqlite3.Error: It is no SQLite file, or damaged, or cannot be read.
        OSError: There is no such file, or it cannot be read.
    """
    real = path.resolve()
    deadline = time.monotonic() + busy_s
    errors = 0
    while True:
        before = Files.of(real)
        answer = _attempt(real, before, read, busy_s)
        after = Files.of(real)
        late = time.monotonic() >= deadline
        if isinstance(answer, _Found):
            # Locks keep together what is read of a shared log, but not where a process was
            # killed and the next one recovers the log into the file while we read.
            if after == before or (before.shared and (late or after.main == before.main)):
                return answer.value
        elif before.shared and after.shared:
            errors += 1
        elif after == before:
            raise answer
        if isinstance(answer, Exception) and errors == _SURE:
            raise answer
        if late:
            problem = f"it was changed while it was read, for {busy_s:g} s; try again"
            raise StoreError(str(path), problem)
        time.sleep(_RETRY_S)


def beside(path: Path, suffix: str) -> Path:
    """The file that SQLite keeps beside a journal; it follows links before it names one."""
    real = path.resolve()
    return real.with_name(real.name + suffix)


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    value: T


def _attempt(
    path: Path, files: Files, read: Callable[[sqlite3.Connection], T], busy_s: float
) -> _Found[T] | Exception:
    """What was read, or the error, which means nothing where the files have changed."""
    try:
        return _Found(_look_once(path, files, read, busy_s))
    except (sqlite3.Error, StoreError, OSError) as error:
        return error


def _look_once(
    path: Path, files: Files, read: Callable[[sqlite3.Connection], T], busy_s: float
) -> T:
    if files.shared:
        with opening:
            # Without the second parameter SQLite would write to the log's index.
            return _read(f"{path.as_uri()}?mode=ro&readonly_shm=1", read, busy_s)
    if files.log is None and files.undo is None:
        # Closed by all, so that there is nothing to lock; the caller sees if that changes.
        return _read(f"{path.as_uri()}?mode=ro&immutable=1", read, busy_s)
    # Left by a machine that went down, or copied: to read it, SQLite has to recover it.
    with tempfile.TemporaryDirectory(prefix="harness-journal-") as folder:
        copy = Path(folder) / "journal.db"
        for suffix in ("", "-wal", "-journal"):
            if beside(path, suffix).exists():
                shutil.copyfile(beside(path, suffix), beside(copy, suffix))
        return _read(copy.resolve().as_uri(), read, busy_s)


def _read(uri: str, read: Callable[[sqlite3.Connection], T], busy_s: float) -> T:
    with closing(
        sqlite3.connect(uri, uri=True, timeout=busy_s, isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        return read(connection)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat.st_size else None
