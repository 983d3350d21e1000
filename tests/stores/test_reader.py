"""Whoever only looks at a journal sees all that is on disk, and changes nothing."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.records import (
    CodeStored,
    Hop,
    RunAdded,
    SnapshotTaken,
    StoredChange,
    WorkspaceSpec,
)
from harness_actors.results import Usage
from harness_actors.signals import RepairComplete
from harness_actors.state import Write
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.readable import ReadableJournal
from tests.stores.contents import contents_of
from tests.stores.entries import COMMAND, a_round, a_spec, added, an_end, changed

ROOT = Path(__file__).parents[2]


def files_of(path: Path) -> dict[str, tuple[bytes, int]]:
    """The files of a folder, with the time of their last change."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()
    }


@pytest.fixture
def killed(path: Path) -> Path:
    """A journal whose process was killed in the middle of committing."""
    command = [sys.executable, "-m", "tests.stores.children", "commit_for_ever", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < 40:
            pass
        child.send_signal(signal.SIGKILL)
    assert path.with_name("runs.db-wal").stat().st_size > 0
    return path


@pytest.fixture
def written(journal: SqliteJournal) -> tuple[SqliteJournal, int]:
    """An open journal with a run in it, and its term."""
    term = journal.begin_term()
    journal.commit(term, [CodeStored(code="c0de", blob=b"x"), added(), a_round(1)])
    return journal, term


def test_it_sees_what_the_journal_sees(written: tuple[SqliteJournal, int]) -> None:
    journal, term = written
    journal.commit(term, [changed(2, end=an_end()), added("run-2")])

    reader = JournalReader(journal.path)

    assert contents_of(reader) == contents_of(journal)
    assert reader.load_result("run-1") == journal.load_result("run-1") == an_end()
    assert reader.load_result("run-2") is None
    assert reader.load_result("nobody") is None


def test_a_closed_journal_is_read_without_a_trace(written: tuple[SqliteJournal, int]) -> None:
    journal, _ = written
    journal.close()
    os.utime(journal.path, ns=(1, 1))
    before = files_of(journal.path)

    reader = JournalReader(journal.path)
    assert reader.position() == 2
    assert len(reader.load_conversation("talk-of-run-1")) == 2

    assert files_of(journal.path) == before


def test_what_a_killed_process_left_is_read_without_a_trace(killed: Path) -> None:
    before = files_of(killed)

    reader = JournalReader(killed)
    position = reader.position()
    run = reader.load_run("run-1")

    assert position >= 40
    assert run is not None
    assert run.state.version == position - 1
    assert files_of(killed) == before
    # And nothing of it is in the way of the next command.
    journal = SqliteJournal(killed)
    assert journal.position() == position
    journal.close()


def test_it_is_read_where_the_index_of_the_log_was_lost(killed: Path) -> None:
    expected = JournalReader(killed).position()
    killed.with_name("runs.db-shm").unlink()
    before = files_of(killed)

    assert JournalReader(killed).position() == expected

    assert files_of(killed) == before


def test_it_sees_each_commit_of_another_process_and_keeps_nothing_open(path: Path) -> None:
    command = [sys.executable, "-m", "tests.stores.children", "commit_for_ever", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        reader = JournalReader(path)
        for _ in range(30):
            acknowledged = int(child.stdout.readline())
            run = reader.load_run("run-1")
            assert run is not None
            assert run.state.version >= acknowledged - 1
            assert len(run.state.log) == 2 * run.state.version
        child.kill()
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _open(fd)]
    assert not any(str(path) in file for file in held)


def _open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_journals_that_open_write_and_close_meanwhile_are_seen_whole(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added()])
    journal.close()
    reader = JournalReader(path)

    def reopen() -> None:
        for version in range(1, 31):
            opened = SqliteJournal(path)
            opened.commit(opened.begin_term(), [a_round(version)])
            opened.close()

    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(reopen)
        while not writing.done():
            run = reader.load_run("run-1")
            assert run is not None
            assert len(run.state.log) == 2 * run.state.version
        writing.result()

    assert reader.position() == 31


def test_it_takes_no_term_and_cannot_write(written: tuple[SqliteJournal, int]) -> None:
    journal, term = written

    reader = JournalReader(journal.path)

    assert not hasattr(reader, "begin_term")
    assert not hasattr(reader, "commit")
    assert journal.commit(term, [a_round(2)]) == [3]
    assert reader.position() == 3


def test_changes_of_a_run_come_page_by_page_as_they_were_committed(
    journal: SqliteJournal,
) -> None:
    hop = Hop(to="compaction", signal=RepairComplete(repairs_made=1))
    made = [
        changed(1, writes=[Write("k", "set", [1])], hop=hop),
        a_round(2),
        changed(3, losses=2),
        changed(4, end=an_end()),
    ]
    mixed = [entry for change in made for entry in (change, a_round(change.version, "run-2"))]
    journal.commit(journal.begin_term(), [added(), added("run-2"), *mixed])
    reader = JournalReader(journal.path)

    pages: list[list[StoredChange]] = []
    while page := reader.load_changes("run-1", pages[-1][-1].position if pages else 0, limit=3):
        pages.append(page)

    assert [len(page) for page in pages] == [3, 1]
    found = [change for page in pages for change in page]
    assert [change.position for change in found] == [3, 5, 7, 9]
    assert [(c.at, c.version, c.delta, c.hop, c.losses) for c in found] == [
        (c.at, c.version, c.delta, c.hop, c.losses) for c in made
    ]
    assert reader.load_changes("nobody") == []


def test_a_list_of_runs_says_where_each_stands(journal: SqliteJournal) -> None:
    progress = [
        Write("harness.turn_count", "increment", 2),
        Write("harness.usage", "increment", {"model_calls": 7, "cost_usd": 0.5}),
    ]
    end = an_end("over")
    work = WorkspaceSpec(path="/work")
    specs = [a_spec(run) for run in ("over", "working", "parked", "new")]
    specs[:2] = [replace(spec, workspace=work) for spec in specs[:2]]
    journal.commit(
        journal.begin_term(),
        [
            *(RunAdded(spec=spec, command=COMMAND, at=100.0) for spec in specs),
            changed(1, "over", end=end),
            changed(1, "working", writes=progress),
            changed(2, "working"),
            changed(9, "parked"),
            added("parked", command="", again=True, at=300.0),
        ],
    )

    found = {h.run_id: h for h in JournalReader(journal.path).headings()}

    assert {run: h.usage for run, h in found.items()} == {
        "over": end.usage,
        "working": Usage(model_calls=7, cost_usd=0.5),
        "parked": Usage(),
        "new": Usage(),
    }
    assert {run: h.phase for run, h in found.items()} == {
        "over": "ended",
        "working": "running",
        "parked": "parked",
        "new": "running",
    }
    assert [(h.turns, h.rounds) for h in found.values()] == [
        (end.turn_count, end.usage.model_calls),
        (2, 7),
        (0, 0),
        (0, 0),
    ]
    assert [h.changed_at for h in found.values()] == [101.0, 102.0, 300.0, 100.0]
    assert [h.command for h in found.values()] == [COMMAND, COMMAND, "", COMMAND]
    assert [h.workspace for h in found.values()] == [None, "/work", None, None]
    assert end.usage != Usage()
    assert a_spec().run_id not in found


def test_a_list_shows_of_each_run_what_is_in_its_snapshot_and_what_came_after_it(
    journal: SqliteJournal,
) -> None:
    def snapshot(run: str, version: int) -> SnapshotTaken:
        values = {"harness.usage": {"model_calls": 10 * version}}
        return SnapshotTaken(run_id=run, version=version, values=values)

    runs = ("new", "snapshot alone", "over", "snapshot and more", "changes alone")
    specs = [
        replace(a_spec(run), workspace=WorkspaceSpec(path=f"/{place}"))
        for place, run in enumerate(runs)
    ]
    journal.commit(
        journal.begin_term(),
        [
            *(RunAdded(spec=spec, command=COMMAND, at=100.0) for spec in specs),
            *(a_round(1, run) for run in runs[1:]),
            snapshot("snapshot alone", 1),
            snapshot("snapshot and more", 1),
            *(a_round(version, run) for version in (2, 3) for run in runs[3:]),
            changed(2, "over", end=an_end("over")),
        ],
    )
    reader = JournalReader(journal.path)

    found = reader.headings()

    assert [(h.run_id, h.rounds, h.workspace) for h in found] == [
        ("new", 0, "/0"),
        ("snapshot alone", 10, "/1"),
        ("over", an_end().usage.model_calls, None),
        ("snapshot and more", 12, "/3"),
        ("changes alone", 3, "/4"),
    ]
    assert [heading for run in runs for heading in reader.headings(run)] == found, (
        "each is the same where it is looked at alone"
    )


def test_runs_are_listed_by_the_beginning_of_their_ids_and_by_nothing_else(
    journal: SqliteJournal,
) -> None:
    ids = ("3f2a", "3f%b", "3F2c", "a3f2")
    journal.commit(journal.begin_term(), [added(run) for run in ids])
    reader = JournalReader(journal.path)

    def named(beginning: str) -> list[str]:
        return [heading.run_id for heading in reader.headings(beginning)]

    assert named("3f") == ["3f2a", "3f%b"]
    assert named("3f%") == ["3f%b"]
    assert named("3f2a4") == []
    assert named("") == list(ids)


def test_a_missing_file_is_said_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such file; check the path") as missing:
        JournalReader(tmp_path / "a" / "runs.db")

    assert str(tmp_path / "a" / "runs.db") in str(missing.value)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_removed_meanwhile_is_said(journal: SqliteJournal) -> None:
    reader = JournalReader(journal.path)
    journal.close()
    journal.path.unlink()

    with pytest.raises(StoreError, match="there is no such file"):
        reader.headings()


def test_a_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a folder; name the journal's file in it"):
        JournalReader(tmp_path)


def test_a_closed_reader_says_so(journal: SqliteJournal) -> None:
    reader = JournalReader(journal.path)
    reader.close()
    reader.close()

    with pytest.raises(StoreError, match="this reader is closed"):
        reader.position()


def test_a_journal_in_a_folder_that_cannot_be_written_is_read(killed: Path) -> None:
    # As root nothing is refused by its mode, so the folder is mounted read-only.
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3" "$4"'
    read = (
        "import sys; from harness_actors.stores import JournalReader; "
        "print(JournalReader(sys.argv[1]).position())"
    )
    expected = JournalReader(killed).position()

    seen = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"),
            *(str(killed.parent), sys.executable, read, str(killed)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert seen.returncode == 0, seen.stderr
    assert int(seen.stdout) == expected


def test_each_reading_has_the_name_of_its_query_and_its_words() -> None:
    readings = {
        name: method
        for name, method in vars(ReadableJournal).items()
        if hasattr(method, "__wrapped__")
    }
    assert len(readings) == 18
    assert [method.__name__ for method in readings.values()] == list(readings)
    assert not [name for name, method in readings.items() if not method.__doc__]
