"""What SQLite, the file system and stored values say is told in words that say what to do."""

import errno
import sqlite3
import zlib
from pathlib import Path

import pytest

from harness_actors.errors import BadInputError, StoreError
from harness_actors.stores.faults import damage, is_full, is_locked, store_error

PATH = Path("/some/runs.db")


def of_sqlite(code: int, text: str = "its words") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode, error.sqlite_errorname = code, "ITS_NAME"
    return error


def without_a_code() -> sqlite3.Error:
    return sqlite3.ProgrammingError("Cannot operate on a closed database.")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (of_sqlite(sqlite3.SQLITE_FULL), "disk is full; make room and run the same command again"),
        (of_sqlite(sqlite3.SQLITE_IOERR), "the disk failed; see to it and run the same command"),
        # An extended code: the kind of fault stands in its lower bits.
        (of_sqlite(sqlite3.SQLITE_IOERR_FSYNC), "the disk failed; see to it"),
        (of_sqlite(sqlite3.SQLITE_READONLY), "it cannot be written; give write access"),
        (of_sqlite(sqlite3.SQLITE_PERM), "access was refused; give write access"),
        (of_sqlite(sqlite3.SQLITE_CANTOPEN), "it cannot be opened; check that its folder exists"),
        (of_sqlite(sqlite3.SQLITE_NOTADB), "it is not a journal of this program"),
        (of_sqlite(sqlite3.SQLITE_ERROR), "it is damaged; restore it from a copy"),
        (of_sqlite(sqlite3.SQLITE_CORRUPT), "it is damaged; restore it from a copy"),
        (of_sqlite(sqlite3.SQLITE_TOOBIG), "its words (ITS_NAME)"),
    ],
)
def test_a_fault_of_the_file_says_what_to_do(error: sqlite3.Error, told: str) -> None:
    problem = str(store_error(PATH, error, busy_s=1.0))

    assert problem.startswith(f"journal '{PATH}': ")
    assert told in problem
    assert "ITS_NAME" in problem
    assert "its words" in problem


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT, 262])
def test_a_lock_says_how_long_it_was_waited_for(code: int) -> None:
    assert is_locked(of_sqlite(code))
    assert str(store_error(PATH, of_sqlite(code), busy_s=2.5)) == (
        f"journal '{PATH}': another process has kept it locked for 2.5 s; "
        "find and end it, then run the same command again"
    )


def test_other_faults_are_told_as_what_they_are() -> None:
    for error, told in (
        (OSError(errno.ENOSPC, "No space left on device"), "cannot open it (No space left"),
        (OSError("no number"), "cannot open it (no number)"),
        (of_sqlite(sqlite3.SQLITE_INTERRUPT), "its pages are read in circles"),
        (of_sqlite(sqlite3.SQLITE_ERROR, "Could not decode to UTF-8 column"), "(Could not decode"),
        (without_a_code(), "Cannot operate on a closed database. (ProgrammingError)"),
    ):
        assert told in str(store_error(PATH, error, busy_s=1.0))
        assert not (isinstance(error, sqlite3.Error) and is_locked(error))


def test_only_a_full_disk_is_full() -> None:
    assert is_full(of_sqlite(sqlite3.SQLITE_FULL))
    assert not is_full(of_sqlite(sqlite3.SQLITE_IOERR))
    assert not is_full(without_a_code())


@pytest.mark.parametrize(
    "error",
    [
        KeyError("spec"),
        IndexError("0"),
        TypeError("is text"),
        ValueError("is deep"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "is no text"),
        OverflowError("is large"),
        AttributeError("is no mapping"),
        MemoryError("is larger"),
        RecursionError("is deeper"),
        zlib.error("is cut"),
        BadInputError("max_turns", ("must be a number",)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_stored_value_raises_is_damage_and_names_the_file(error: Exception) -> None:
    with pytest.raises(StoreError) as told, damage(PATH):
        raise error
    assert str(told.value) == (
        f"journal '{PATH}': it is damaged; restore it from a copy, or move it away to start anew "
        f"({type(error).__name__}: {error})"
    )


@pytest.mark.parametrize(
    "error",
    [StoreError("/other", "as it is"), of_sqlite(sqlite3.SQLITE_FULL), OSError(), SystemExit()],
)
def test_what_is_no_damage_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as passed, damage(PATH):
        raise error
    assert passed.value is error
