"""A journal whose files are taken away while it is open."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.standing import FileId, StandingFiles
from tests.stores.entries import a_round, added

AWAY = "elsewhere"


def removed(folder: Path) -> None:
    (folder / "runs.db").unlink()


def folder_removed(folder: Path) -> None:
    shutil.rmtree(folder)


def folder_moved(folder: Path) -> None:
    folder.rename(folder.with_name(AWAY))


def another_in_its_place(folder: Path) -> None:
    a_journal(folder / "other.db", "run-other")
    (folder / "other.db").replace(folder / "runs.db")


def folder_moved_and_another_made(folder: Path) -> None:
    folder_moved(folder)
    a_journal(folder / "runs.db", "run-other")


def brought_back_from_a_copy(folder: Path) -> None:
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    shutil.rmtree(folder)
    copy.rename(folder)


def log_removed(folder: Path) -> None:
    (folder / "runs.db-wal").unlink()


def log_replaced(folder: Path) -> None:
    log_removed(folder)
    (folder / "runs.db-wal").touch()


def index_removed(folder: Path) -> None:
    (folder / "runs.db-shm").unlink()


NOW = rf"\(it is '.*{AWAY}/runs.db' now\)"
TAKEN_AWAY: dict[Callable[[Path], None], str] = {
    removed: ": it was removed or moved away while",
    folder_removed: "its folder '.*work' was removed or moved away while",
    folder_moved: f"its folder '.*work' was removed or moved away {NOW}",
    another_in_its_place: "another file was put in its place while",
    folder_moved_and_another_made: f"another file was put in its place {NOW}",
    brought_back_from_a_copy: "another file was put in its place while",
    log_removed: "'runs.db-wal' beside it was removed",
    log_replaced: "another file was put in the place of 'runs.db-wal' beside it",
    index_removed: "'runs.db-shm' beside it was removed",
}
MAIN = [take for take in TAKEN_AWAY if not take.__name__.startswith(("log", "index"))]


def a_journal(path: Path, run_id: str) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(run_id)])
    journal.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("take_away", TAKEN_AWAY, ids=lambda take: take.__name__)
def test_nothing_is_committed_any_more_and_the_error_says_what_happened(
    folder: Path, take_away: Callable[[Path], None]
) -> None:
    path = folder / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])

    take_away(folder)

    for use in (journal.check_standing, lambda: journal.commit(term, [a_round(1)])):
        with pytest.raises(StoreError, match=TAKEN_AWAY[take_away]) as refused:
            use()
        assert refused.value.path == str(path)
    journal.close()


@pytest.mark.parametrize("take_away", MAIN, ids=lambda take: take.__name__)
def test_nothing_is_read_of_one_that_is_gone(
    folder: Path, take_away: Callable[[Path], None]
) -> None:
    journal = SqliteJournal(folder / "runs.db")
    journal.commit(journal.begin_term(), [added()])

    take_away(folder)

    with pytest.raises(StoreError, match="while it was in use"):
        journal.headings()
    journal.close()


def test_what_was_moved_away_gets_no_more_and_can_be_gone_on_with(folder: Path) -> None:
    journal = SqliteJournal(folder / "runs.db")
    term = journal.begin_term()
    journal.commit(term, [added()])
    folder_moved(folder)

    with pytest.raises(StoreError):
        journal.commit(term, [added("run-2")])
    journal.close()

    moved = JournalReader(folder.with_name(AWAY) / "runs.db")
    assert [heading.run_id for heading in moved.headings()] == ["run-1"]


def test_one_that_takes_its_place_is_left_alone_when_it_closes(folder: Path) -> None:
    """SQLite removes what is beside a journal by its name."""
    path = folder / "runs.db"
    old = SqliteJournal(path)
    old.commit(old.begin_term(), [added()])
    folder_removed(folder)
    fresh = SqliteJournal(path)
    term = fresh.begin_term()
    fresh.commit(term, [added("run-2")])

    old.close()

    fresh.check_standing()
    assert fresh.commit(term, [a_round(1, "run-2")]) == [2]
    assert [heading.run_id for heading in JournalReader(path).headings()] == ["run-2"]
    fresh.close()


def test_what_a_lost_log_held_is_saved_when_it_closes(folder: Path) -> None:
    path = folder / "runs.db"
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added()])
    log_removed(folder)

    journal.close()

    assert [heading.run_id for heading in JournalReader(path).headings()] == ["run-1"]


@pytest.mark.parametrize("take_away", MAIN, ids=lambda take: take.__name__)
def test_one_that_must_be_there_is_not_made_and_not_taken_for_another(
    folder: Path, take_away: Callable[[Path], None]
) -> None:
    path = folder / "runs.db"
    held = SqliteJournal(path)
    known = FileId.of(path)
    assert known is not None
    SqliteJournal(path, file=known).close()

    take_away(folder)
    found = FileId.of(path)

    with pytest.raises(StoreError, match="while it was in use"):
        SqliteJournal(path, file=known)
    assert FileId.of(path) == found
    assert folder.exists() == (found is not None or take_away is removed)
    held.close()


def test_another_file_that_has_its_inode_by_now_is_not_told_of(folder: Path) -> None:
    another = folder / "another.log"
    with another.open("w"):
        inode_of_the_one_that_is_gone = FileId.of(another)

        with pytest.raises(StoreError, match="was removed or moved away while") as refused:
            SqliteJournal(folder / "runs.db", file=inode_of_the_one_that_is_gone)

    assert another.name not in str(refused.value)


def test_files_that_stand_for_others_from_the_beginning_are_refused(folder: Path) -> None:
    a_journal(folder / "runs.db", "run-1")
    a_journal(folder / "other.db", "run-2")
    known = FileId.of(folder / "runs.db")

    assert StandingFiles(folder / "runs.db", known).check() == 0
    with pytest.raises(StoreError, match="another file was put in its place"):
        StandingFiles(folder / "other.db", known)
    with pytest.raises(StoreError, match="it was removed or moved away"):
        StandingFiles(folder / "none.db", known)


def test_a_link_that_is_pointed_elsewhere_is_another_journal(folder: Path) -> None:
    a_journal(folder / "one.db", "run-1")
    a_journal(folder / "two.db", "run-2")
    link = folder / "runs.db"
    link.symlink_to("one.db")
    journal = SqliteJournal(link)
    journal.check_standing()

    link.unlink()
    link.symlink_to("two.db")

    with pytest.raises(StoreError, match="another file"):
        journal.commit(journal.begin_term(), [added()])
    journal.close()
