"""Terms, positions, and groups that are written whole or not at all."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_actors.errors import StaleTermError, StoreError
from harness_actors.messages import Message
from harness_actors.ports import Journal
from harness_actors.records import CodeStored, Entry, ProcessMark, SnapshotTaken
from harness_actors.state import Write
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.schema import PLACES
from tests.stores.entries import a_round, added, an_end, changed
from tests.stores.open_files import open_files

CLOSED = "Cannot operate on a closed database"


def test_it_answers_the_port(journal: SqliteJournal) -> None:
    port: Journal = journal

    assert port.begin_term() == 1


def test_terms_grow_by_one_across_reopening(path: Path) -> None:
    for expected in (1, 2, 3):
        journal = SqliteJournal(path)
        assert journal.begin_term() == expected
        journal.close()


def test_a_commit_of_an_older_term_is_refused_and_writes_nothing(path: Path) -> None:
    older, newer = SqliteJournal(path), SqliteJournal(path)
    old_term = older.begin_term()
    older.commit(old_term, [added()])
    new_term = newer.begin_term()

    with pytest.raises(StaleTermError, match="term 1 is over: term 2 owns it") as refused:
        older.commit(old_term, [a_round(1)])
    with pytest.raises(StaleTermError):
        older.commit(old_term, [])
    with pytest.raises(StaleTermError):
        older.forget_processes(old_term)

    assert refused.value.path == str(path)
    assert newer.load_conversation("talk-of-run-1") == []
    assert newer.commit(new_term, [a_round(1)]) == [2]
    older.close()
    newer.close()


def test_a_term_that_nobody_has_begun_is_refused_like_one_that_is_over(
    journal: SqliteJournal,
) -> None:
    # A journal that was brought back from a copy knows nothing of what came after that.
    term = journal.begin_term()
    with pytest.raises(StaleTermError):
        journal.commit(term + 1, [added()])
    with pytest.raises(StaleTermError):
        journal.forget_processes(term + 1)

    assert journal.commit(term, [added()]) == [1]


def test_a_newer_owner_may_have_written_before_the_older_one_looks(path: Path) -> None:
    first, second = SqliteJournal(path), SqliteJournal(path)
    term = first.begin_term()
    first.commit(term, [added("run-1")])
    # The same term through another connection: positions are read, not remembered.
    assert second.commit(term, [added("run-2"), a_round(1, "run-1")]) == [2, 3]
    assert first.commit(term, [a_round(1, "run-2")]) == [4]
    first.close()
    second.close()


def test_runs_and_changes_have_positions_of_their_own_and_the_rest_share(
    journal: SqliteJournal,
) -> None:
    term = journal.begin_term()
    entries: list[Entry] = [
        ProcessMark(role="coordinator", node="n", pid=1, started=1),
        CodeStored(code="c0de", blob=b"x"),
        added(),
        a_round(1),
        SnapshotTaken(run_id="run-1", version=1, values={}),
        a_round(2),
    ]

    assert journal.commit(term, entries) == [0, 0, 1, 2, 2, 3]
    assert journal.position() == 3
    assert journal.commit(term, []) == []


def test_positions_grow_across_reopening(path: Path) -> None:
    seen: list[int] = []
    for at in range(3):
        journal = SqliteJournal(path)
        term = journal.begin_term()
        entries: list[Entry] = [
            added(f"run-{at}"),
            *(a_round(version, f"run-{at}") for version in (1, 2)),
        ]
        seen += journal.commit(term, entries)
        assert journal.position() == seen[-1]
        journal.close()
    assert seen == list(range(1, 10))


@pytest.mark.parametrize(
    ("faulty", "problem"),
    [
        (a_round(1, "stranger"), "run 'stranger' was never added"),
        (SnapshotTaken(run_id="stranger", version=1, values={}), "'stranger' was never added"),
        (added("stranger", again=True), "run 'stranger' was never added"),
        (added("run-1"), "run 'run-1' was added to it before"),
        (added("lone \ud800 surrogate"), "an entry cannot be stored"),
        (changed(2, writes=[Write("k", "set", {1, 2})]), "'run-1' has a value that is not plain"),
        (changed(2**70), "an entry cannot be stored"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_a_failing_entry_leaves_nothing_of_its_group(
    journal: SqliteJournal, faulty: Entry, problem: str
) -> None:
    term = journal.begin_term()
    journal.commit(term, [added("run-1"), a_round(1)])
    group: list[Entry] = [
        CodeStored(code="new", blob=b"x"),
        added("run-2"),
        a_round(1, "run-2"),
        changed(2, end=an_end()),
        SnapshotTaken(run_id="run-1", version=1, values={"x": 1}),
        ProcessMark(role="host", node="n", pid=1, started=1),
    ]

    with pytest.raises(StoreError, match=problem):
        journal.commit(term, [*group, faulty])

    assert journal.position() == 2
    assert journal.load_code("new") is None
    assert journal.load_processes() == []
    assert [heading.run_id for heading in journal.headings()] == ["run-1"]
    stored = journal.load_run("run-1")
    assert stored is not None
    assert stored.end is None
    assert stored.state.version == 1
    # And the journal goes on as if the group had never been.
    with pytest.raises(StoreError, match="'run-2' was never added"):
        journal.commit(term, [a_round(1, "run-2")])
    assert journal.commit(term, group) == [2, 3, 4, 5, 5, 5]
    assert len(journal.load_conversation("talk-of-run-2")) == 2


def test_a_full_disk_takes_the_group_back_and_says_what_to_do(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    journal.commit(term, [added()])
    # Real SQLITE_FULL, without filling a disk: the file may not grow beyond its size.
    journal._writer.execute("PRAGMA max_page_count = 1")

    with pytest.raises(StoreError, match="disk is full; make room and run the same") as full:
        journal.commit(term, [a_round(version) for version in range(1, 200)])

    assert full.value.path == str(journal.path)
    assert journal.position() == 1
    journal._writer.execute("PRAGMA max_page_count = 1000000")
    assert journal.commit(term, [a_round(1)]) == [2]


def test_a_locked_file_is_waited_for_and_then_reported(path: Path) -> None:
    journal = SqliteJournal(path, busy_s=0.2)
    for connection in (journal._writer, journal._reader):
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (200,)
    term = journal.begin_term()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match=r"kept it locked for 0\.2 s"):
        journal.commit(term, [added()])
    with pytest.raises(StoreError, match="kept it locked"):
        journal.begin_term()

    assert journal.position() == 0
    other.execute("ROLLBACK")
    other.close()
    assert journal.commit(term, [added()]) == [1]
    journal.close()


def test_a_lock_that_is_let_go_in_time_is_waited_for(path: Path) -> None:
    journal = SqliteJournal(path)
    term = journal.begin_term()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    letting_go = threading.Timer(0.1, other.execute, ["ROLLBACK"])

    letting_go.start()

    assert journal.commit(term, [added()]) == [1]
    letting_go.join()
    other.close()
    journal.close()


def test_a_file_that_another_process_keeps_to_itself_is_not_opened(path: Path) -> None:
    SqliteJournal(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreError, match="another process has kept it locked"):
        SqliteJournal(path, busy_s=0.2)

    other.execute("ROLLBACK")
    other.close()
    SqliteJournal(path).close()


def test_a_file_that_somebody_reads_while_its_mode_changes_is_waited_for(path: Path) -> None:
    SqliteJournal(path).close()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # As it is while another process makes it, too; SQLite does not wait for this by itself.
    assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM runs").fetchone()
    with pytest.raises(StoreError, match=r"kept it locked for 0\.2 s") as refused:
        SqliteJournal(path, busy_s=0.2)
    letting_go = threading.Timer(0.5, other.close)

    letting_go.start()

    journal = SqliteJournal(path)
    letting_go.join()
    assert journal.begin_term() == 1
    journal.close()
    # Nothing of those that were refused is left, though the error is still there.
    assert open_files(path.parent) == []
    del refused


def test_one_thread_reads_while_another_commits(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    journal.commit(term, [added()])

    def commit_rounds() -> None:
        for version in range(1, 101):
            journal.commit(term, [a_round(version)])

    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(commit_rounds)
        while not writing.done():
            stored = journal.load_run("run-1")
            assert stored is not None
            assert len(stored.state.log) == 2 * stored.state.version
        writing.result()

    assert len(journal.load_events(0)) == 300


def test_threads_wait_for_each_other_and_mix_nothing(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    runs = [f"run-{number}" for number in range(4)]
    journal.commit(term, [added(run) for run in runs])

    def commit_and_read(run: str) -> list[int]:
        positions: list[int] = []
        for version in range(1, 31):
            positions += journal.commit(term, [a_round(version, run)])
            stored = journal.load_run(run)
            assert stored is not None
            assert stored.state.version == version
        return positions

    with ThreadPoolExecutor(4) as threads:
        positions = [position for found in threads.map(commit_and_read, runs) for position in found]

    assert sorted(positions) == list(range(5, 125))


def test_closing_waits_for_who_commits_or_reads_just_now(path: Path) -> None:
    for _ in range(10):
        journal = SqliteJournal(path)
        term = journal.begin_term()
        run = f"run-{term}"
        journal.commit(term, [added(run)])

        versions: list[int] = []

        def commit_and_read(
            journal: SqliteJournal, term: int, run: str, versions: list[int]
        ) -> None:
            while True:
                journal.commit(term, [a_round(len(versions) + 1, run)])
                versions.append(len(versions) + 1)
                journal.load_conversation(f"talk-of-{run}")

        with ThreadPoolExecutor(1) as thread:
            using = thread.submit(commit_and_read, journal, term, run, versions)
            while len(versions) < 3:
                pass
            journal.close()
            with pytest.raises(StoreError, match=CLOSED):
                using.result(timeout=10)

        stored = JournalReader(path).load_run(run)
        assert stored is not None
        assert stored.state.version == len(versions)


def test_closing_does_not_wait_for_other_processes_that_read(path: Path) -> None:
    journal = SqliteJournal(path, busy_s=60.0)
    journal.commit(journal.begin_term(), [added()])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM runs").fetchone()

    begun = time.monotonic()
    journal.close()

    assert time.monotonic() - begun < 30.0
    other.close()
    assert JournalReader(path).position() == 1


def test_a_change_of_too_many_messages_is_refused_with_its_group(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    journal.commit(term, [added()])
    said = [Message.user("word")] * (PLACES + 1)

    with pytest.raises(StoreError, match=r"one change may hold 1048576 messages, not 1048577"):
        journal.commit(term, [a_round(1), changed(2, messages=said)])

    assert journal.position() == 1
    assert journal.commit(term, [a_round(1)]) == [2]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("used", [False, True])
def test_a_closed_journal_says_so(journal: SqliteJournal, used: bool, times: int) -> None:
    if used:
        journal.commit(journal.begin_term(), [added()])
    for _ in range(times):
        journal.close()

    with pytest.raises(StoreError, match=CLOSED):
        journal.begin_term()
    with pytest.raises(StoreError, match=CLOSED):
        journal.position()


def test_closing_leaves_one_file(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    for _ in range(2):
        journal.close()

        assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_every_commit_is_forced_to_the_disk(journal: SqliteJournal) -> None:
    assert journal._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert journal._writer.execute("PRAGMA synchronous").fetchone() == (2,)
