"""What went wrong with the file, in words that say what to do."""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_actors.errors import HarnessError, StoreError
from harness_actors.stores.users import name_of

# Primary result codes of SQLite; extended ones carry more in their higher bits.
_WHAT_TO_DO = {
    sqlite3.SQLITE_FULL: "database or disk is full; make room and run the same command again",
    sqlite3.SQLITE_IOERR: "the disk failed; see to it and run the same command again",
    sqlite3.SQLITE_READONLY: "it cannot be written; give write access to it and its folder",
    sqlite3.SQLITE_PERM: "access was refused; give write access to it and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and is writable",
    sqlite3.SQLITE_NOTADB: "it is not a journal of this program; move it away or name another",
    # Our statements are fixed: where one does not fit, the tables were tampered with.
    sqlite3.SQLITE_ERROR: "it is damaged; restore it from a copy, or move it away to start anew",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy, or move it away to start anew",
}
VALUE_ERRORS = (LookupError, OverflowError, TypeError, ValueError)
"""What a value that does not fit raises on its way into or out of a column."""
_DECODING_ERRORS = (*VALUE_ERRORS, AttributeError, MemoryError, RecursionError, zlib.error)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY)


def is_locked(error: sqlite3.Error) -> bool:
    """Another process holds the file just now, so that trying again may help."""
    return _primary_code(error) in _LOCKED


def is_full(error: sqlite3.Error) -> bool:
    """There is no room for what is to be written."""
    return _primary_code(error) == sqlite3.SQLITE_FULL


def store_error(path: Path, error: sqlite3.Error | OSError, *, busy_s: float) -> StoreError:
    """The error of SQLite or of the file system, as one of ours.

    What is refused names whom: in a Ray of another user it is not who gave the command.
    """
    user = name_of(os.geteuid())
    if isinstance(error, OSError):
        return StoreError(str(path), f"{user} cannot open it ({error.strerror or error})")
    if is_locked(error):
        problem = (
            f"another process has kept it locked for {busy_s:g} s; "
            "find and end it, then run the same command again"
        )
        return StoreError(str(path), problem)
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if str(error).startswith("Could not decode to UTF-8"):
        return damaged(path, str(error))
    if _primary_code(error) == sqlite3.SQLITE_INTERRUPT:
        return damaged(path, "its pages are read in circles")
    advice = _WHAT_TO_DO.get(_primary_code(error))
    if advice is None:
        return StoreError(str(path), f"{error} ({name})")
    if _primary_code(error) in _REFUSED:
        return StoreError(str(path), f"{advice} ({name} for {user}: {error})")
    return StoreError(str(path), f"{advice} ({name}: {error})")


def foreign(path: Path) -> StoreError:
    return StoreError(str(path), _WHAT_TO_DO[sqlite3.SQLITE_NOTADB])


def damaged(path: Path, detail: str) -> StoreError:
    advice = _WHAT_TO_DO[sqlite3.SQLITE_CORRUPT]
    return StoreError(str(path), f"{advice} ({detail})")


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Whatever a stored value raises when it is decoded, as the damage that it shows."""
    try:
        yield
    except StoreError:
        raise
    except (*_DECODING_ERRORS, HarnessError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
