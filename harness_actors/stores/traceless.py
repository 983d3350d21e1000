"""Reading a journal's file without leaving a trace, whoever else has it open or had."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from errno import EISDIR
from functools import partial
from os import stat_result, strerror
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from threading import Lock
from typing import Generic, NoReturn, Self, TypeVar

from harness_actors.errors import StoreError
from harness_actors.stores.distrust import bound_steps, connect
from harness_actors.stores.room import room_for
from harness_actors.stores.schema import check_header
from harness_actors.stores.write_ahead import has_commits

T = TypeVar("T")

_RETRY_S = 0.02
_HALF_MADE_S = 1.0
"""How long the rollback journal of a file that another process makes may lie there."""
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
        if not S_ISREG(stat.st_mode):
            raise StoreError(str(path), "it is not a file; name the journal's file")
        return cls(
            (stat.st_ino, stat.st_size, stat.st_mtime_ns),
            _signature(beside(path, "-wal")),
            _state(beside(path, "-shm")) is not None,
            _signature(beside(path, "-journal")),
        )

    @property
    def shared(self) -> bool:
        """SQLite's locks keep what is read in one piece."""
        return self.index and self.undo is None


def read_traceless(path: Path, read: Callable[[sqlite3.Connection], T], *, busy_s: float) -> T:
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
    begun = time.monotonic()
    deadline = begun + busy_s
    errors = 0
    answer: _Found[T] | Exception | None = None
    try:
        while True:
            before = Files.of(real)
            if before.undo is not None and time.monotonic() < begun + _HALF_MADE_S:
                # Another process makes the file just now.
                time.sleep(_RETRY_S)
                continue
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
    finally:
        # An error that is raised here knows this frame: known by it, it would stay for a while,
        # with all that was read.
        del answer


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
            return _read(path, "mode=ro&readonly_shm=1", read, busy_s)
    if files.undo is not None:
        # Its process died while it made or changed the file, which only a writer sets right.
        return _read(path, "mode=ro&immutable=1", partial(_half_made, path), busy_s)
    if files.log is None or not has_commits(beside(path, "-wal")):
        # Closed by all, so that there is nothing to lock; the caller sees if that changes.
        return _read(path, "mode=ro&immutable=1", read, busy_s)
    # Left by a machine that went down, or copied. The index that is missing is made in memory,
    # which SQLite does only for a file that nobody else can lock. In the end it would move the
    # log, which it cannot into a file that is open for reading; one that has no commits it
    # would remove.
    return _read(path, "mode=ro&vfs=unix-none", read, busy_s, alone=True)


def _read(
    path: Path,
    how: str,
    read: Callable[[sqlite3.Connection], T],
    busy_s: float,
    *,
    alone: bool = False,
) -> T:
    with closing(connect(f"{path.as_uri()}?{how}", busy_s=busy_s)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN")
        size = size_of(path)
        bound_steps(connection, size)
        with room_for(size):
            return read(connection)


def size_of(path: Path) -> int:
    """What a journal takes on the disk with its log, in bytes; holes in them take nothing."""
    return sum(
        512 * file.stat().st_blocks for file in (path, beside(path, "-wal")) if file.exists()
    )


def _half_made(path: Path, connection: sqlite3.Connection) -> NoReturn:
    check_header(path, connection)
    problem = (
        f"it was left half made, with {beside(path, '-journal').name!r} beside it; a command that "
        "works on it sets it right, as `harness ctl store compact --store` does"
    )
    raise StoreError(str(path), problem)


def _signature(path: Path) -> tuple[int, int, int] | None:
    stat = _state(path)
    if stat is None or not stat.st_size:
        return None
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _state(path: Path) -> stat_result | None:
    """That of a file beside a journal; None where there is none."""
    try:
        stat = path.lstat()
    except FileNotFoundError:
        return None
    if not S_ISREG(stat.st_mode):
        problem = "it is not a file, and nothing that SQLite leaves there; remove it"
        raise StoreError(str(path), problem)
    return stat
