"""Which files are opened, and which are refused without a byte of them changed."""

import hashlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.schema import APPLICATION_ID, VERSION
from harness_actors.stores.vocabulary import VOCABULARY
from tests.stores.entries import a_round, added


def a_journal(path: Path) -> None:
    """A file of some 50 pages, closed."""
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), *(a_round(v) for v in range(1, 500))])
    journal.close()


def patch(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        file.write(data)


def text(path: Path) -> None:
    path.write_text("These are my notes, not a journal.\n" * 10)


def short_text(path: Path) -> None:
    path.write_bytes(b"x")


def foreign_database(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE runs (run_id TEXT)")
    other.close()


def newer_version(path: Path) -> None:
    a_journal(path)
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version = {VERSION + 1}")
    other.close()


def version_zero(path: Path) -> None:
    a_journal(path)
    patch(path, 60, bytes(4))


def truncated(path: Path) -> None:
    a_journal(path)
    os.truncate(path, path.stat().st_size // 2)


def cut_in_its_header(path: Path) -> None:
    a_journal(path)
    os.truncate(path, 50)


def torn_pages(path: Path) -> None:
    a_journal(path)
    for page in range(10, 30):
        patch(path, page * 4096, os.urandom(4096))


def torn_first_page(path: Path) -> None:
    a_journal(path)
    patch(path, 100, os.urandom(3000))


def a_table_short(path: Path) -> None:
    a_journal(path)
    other = sqlite3.connect(path)
    other.execute("DROP TABLE snapshots")
    other.close()


REFUSED = [
    (text, "not a journal of this program; move it away or name another"),
    (short_text, "not a journal of this program"),
    (foreign_database, "not a journal of this program"),
    (newer_version, r"version 2, and this program knows version 1 only; use the harness_actors"),
    (version_zero, "version 0"),
    (cut_in_its_header, "not a journal of this program"),
    (truncated, "damaged; restore it from a copy, or move it away"),
    (torn_pages, "damaged; restore it from a copy, or move it away"),
    (torn_first_page, "damaged; restore it from a copy, or move it away"),
    (a_table_short, "damaged; .*it has no snapshots"),
]


@pytest.mark.parametrize(("make", "problem"), REFUSED, ids=[make.__name__ for make, _ in REFUSED])
def test_a_file_that_is_refused_stays_as_it_was(
    path: Path, make: Callable[[Path], None], problem: str
) -> None:
    make(path)
    before = path.read_bytes()

    with pytest.raises(StoreError, match=problem) as refused:
        SqliteJournal(path)

    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_damaged_file_with_a_log_beside_it_stays_as_it_was(path: Path) -> None:
    a_journal(path)
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [a_round(500)])
    # What a process leaves that is killed here: a file with its log.
    log = path.with_name("runs.db-wal").read_bytes()
    file = path.read_bytes()
    journal.close()
    path.write_bytes(file)
    torn_pages_only = bytearray(file)
    torn_pages_only[10 * 4096 : 30 * 4096] = os.urandom(20 * 4096)
    path.write_bytes(torn_pages_only)
    path.with_name("runs.db-wal").write_bytes(log)

    with pytest.raises(StoreError, match="damaged"):
        SqliteJournal(path)

    assert path.read_bytes() == torn_pages_only
    assert path.with_name("runs.db-wal").read_bytes() == log


def test_damage_that_shows_only_on_reading_is_reported_too(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added()])
    journal.close()
    # A well-formed database with nonsense in a column: no check of pages finds it.
    other = sqlite3.connect(path)
    other.execute("UPDATE runs SET metadata = x'00112233'")
    other.commit()
    other.close()
    journal = SqliteJournal(path)

    with pytest.raises(StoreError, match="damaged"):
        journal.headings()
    with pytest.raises(StoreError, match="damaged"):
        journal.load_run("run-1")

    assert journal.position() == 1
    journal.close()


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b c#?%" / "runs.db"

    SqliteJournal(path).close()
    SqliteJournal(str(path)).close()

    assert path.is_file()


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()

    journal = SqliteJournal(path)

    assert journal.begin_term() == 1
    journal.close()


def test_a_link_to_a_journal_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    a_journal(path)

    journal = SqliteJournal(link)

    assert journal.position() == 500
    journal.close()


def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Is a directory"):
        SqliteJournal(tmp_path)
    blocker = tmp_path / "blocker"
    blocker.write_text("a file, not a folder")
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteJournal(blocker / "runs.db")


def test_the_file_says_what_it_is(path: Path) -> None:
    a_journal(path)

    header = path.read_bytes()[:100]

    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == VERSION == 1


def test_the_vocabulary_of_version_1_never_changes() -> None:
    # Journals that exist are read with it: another text needs another schema version.
    digest = hashlib.sha256(VOCABULARY).hexdigest()

    assert digest == "df733fbf57e4aeae5a31fb571caa55433eede6038e7b07a7bc06752e80027b96"
    assert len(VOCABULARY) < 4096 - 262, "words beyond the window would never be found"
