"""A journal that was replaced while its write-ahead log stayed is never read as if it were ours."""

import os
import shutil
import sqlite3
from base64 import b85encode
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.messages import Message
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.connection import open_journal
from harness_actors.stores.expiry import compact
from harness_actors.stores.marks import LOG_BYTES, move_log
from tests.stores.contents import contents_of
from tests.stores.entries import a_round, added, changed
from tests.stores.test_versions import files_of, unpacked

MIXED = "it was replaced while its write-ahead log 'runs.db-wal' stayed beside it"


def left_behind(path: Path, folder: Path) -> Path:
    """The files of a journal as a process leaves them that is killed now."""
    folder.mkdir()
    for name in ("runs.db", "runs.db-wal"):
        shutil.copyfile(path.with_name(name), folder / name)
    return folder / "runs.db"


def large_rounds(journal: SqliteJournal, term: int, first: int, count: int) -> None:
    """Rounds of a quarter of a megabyte each."""
    for version in range(first, first + count):
        message = Message.user(b85encode(os.urandom(200_000)).decode())
        journal.commit(term, [changed(version, messages=[message])])


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal that was closed once, then worked on, and left by a killed process."""
    folder = tmp_path_factory.mktemp("once")
    path = folder / "work" / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added(), a_round(1)])
    journal.close()
    shutil.copyfile(path, folder / "earlier.db")
    journal = SqliteJournal(path)
    shutil.copyfile(path, folder / "opened.db")
    large_rounds(journal, term, 2, LOG_BYTES // 250_000 + 4)
    assert path.with_name("runs.db-wal").stat().st_size > LOG_BYTES
    shutil.copyfile(path, folder / "moved.db")
    journal.commit(term, [a_round(40, "run-1")])
    left_behind(path, folder / "left")
    journal.close()
    return folder


@pytest.fixture
def left(once: Path, tmp_path: Path) -> Path:
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "left" / "runs.db"


def an_earlier_copy(left: Path) -> None:
    shutil.copyfile(left.parents[1] / "earlier.db", left)


def a_copy_of_when_it_was_opened(left: Path) -> None:
    shutil.copyfile(left.parents[1] / "opened.db", left)


def another_journal(left: Path) -> None:
    other = left.with_name("other.db")
    journal = SqliteJournal(other)
    journal.commit(journal.begin_term(), [added("run-other")])
    journal.close()
    other.replace(left)


def one_of_an_earlier_version(left: Path) -> None:
    folder = left.parents[1] / "v2"
    folder.mkdir()
    unpacked(2, "", folder).replace(left)


REPLACED: list[Callable[[Path], None]] = [
    an_earlier_copy,
    a_copy_of_when_it_was_opened,
    another_journal,
    one_of_an_earlier_version,
]


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader, compact])
@pytest.mark.parametrize("replace", REPLACED)
def test_a_replaced_file_beside_the_log_of_another_is_refused(
    left: Path, replace: Callable[[Path], None], opened: Callable[[Path], object]
) -> None:
    replace(left)
    before = files_of(left)

    with pytest.raises(StoreError, match=MIXED) as refused:
        opened(left)

    assert f"remove '{left}-wal' to go on" in str(refused.value)
    assert {name: before[name] for name in ("runs.db", "runs.db-wal")} == {
        name: files_of(left)[name] for name in ("runs.db", "runs.db-wal")
    }


def test_without_that_log_it_is_what_it_was(left: Path) -> None:
    an_earlier_copy(left)
    left.with_name("runs.db-wal").unlink()

    journal = SqliteJournal(left)

    assert journal.position() == 2
    journal.close()


def test_a_copy_of_the_file_alone_that_the_log_goes_on_from_is_whole_again(left: Path) -> None:
    before = contents_of(JournalReader(left))
    shutil.copyfile(left.parents[1] / "moved.db", left)

    assert contents_of(JournalReader(left)) == before


def test_wherever_a_process_is_killed_that_moves_its_log_nothing_is_taken_for_mixed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work" / "runs.db"
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    held = left_behind(path, tmp_path / "held")
    journal.close()
    connection = open_journal(held, busy_s=1.0)
    connection.execute("UPDATE terms SET term = 7")
    copies: list[Path] = []
    connection.set_trace_callback(
        lambda _: copies.append(left_behind(held, tmp_path / f"copy-{len(copies)}"))
    )

    for _ in range(2):
        assert move_log(held, connection, truncate=False)

    connection.set_trace_callback(None)
    connection.close()
    assert len(copies) > 12
    for copy in copies:
        reader = JournalReader(copy)
        assert len(contents_of(reader)["runs"]) == 1
        journal = SqliteJournal(copy)
        assert journal.begin_term() == 8
        journal.close()


def test_a_file_into_which_its_log_was_moved_in_part_is_no_other(tmp_path: Path) -> None:
    path = tmp_path / "work" / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])
    large_rounds(journal, term, 1, 4)
    left = left_behind(path, tmp_path / "left")
    journal.close()
    # SQLite writes the pages in their order, and the first one says how many there are.
    with path.open("rb") as whole, left.open("r+b") as part:
        part.write(whole.read(4096))

    journal = SqliteJournal(left)

    assert journal.position() == 5
    journal.close()


def test_the_log_stays_short_though_somebody_reads(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])
    log = path.with_name("runs.db-wal")

    large_rounds(journal, term, 1, 40)
    assert log.stat().st_size < 1.5 * LOG_BYTES

    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM records").fetchone()
    large_rounds(journal, term, 41, 50)
    assert log.stat().st_size > 2 * LOG_BYTES
    reader.close()
    large_rounds(journal, term, 91, 40)

    assert log.stat().st_size < 1.5 * LOG_BYTES
    left = left_behind(path, tmp_path / "left")
    assert JournalReader(left).position() == 131
    journal.close()


def test_a_file_that_is_written_over_while_it_is_open_gets_nothing_of_its_log(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])
    journal.close()
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    journal = SqliteJournal(path)
    large_rounds(journal, term, 1, 2)

    shutil.copyfile(copy, path)

    with pytest.raises(StoreError, match=MIXED):
        large_rounds(journal, term, 3, 40)
    journal.close()
    assert path.read_bytes() == copy.read_bytes()
    with pytest.raises(StoreError, match=MIXED):
        JournalReader(path)
