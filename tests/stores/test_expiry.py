"""What a journal forgets, by the rule of `harness_actors.stores.expiry`."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import BadInputError, StoreError, StoreInUseError
from harness_actors.records import CodeStored, Entry, RunAdded, SnapshotTaken
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.artifacts import ArtifactFolder, folder_of
from harness_actors.stores.conversations import code_of, request_name
from harness_actors.stores.expiry import DAYS_KEPT, Cleared, compact, expire
from harness_actors.stores.home import SECONDS_PER_DAY, days_kept, free_journal
from harness_actors.stores.lock import hold, is_held, lock_of, release
from harness_actors.stores.logs import RunLog, log_of
from tests.stores.contents import contents_of
from tests.stores.entries import a_round, added, an_end, changed
from tests.stores.open_files import open_files

ROOT = Path(__file__).parents[2]
NOW = 1_000_000.0


def a_run(
    run_id: str,
    *,
    rounds: int = 2,
    ended_at: float | None = 100.0,
    conversation_id: str | None = None,
    code: str = "c0de",
) -> list[Entry]:
    """A run with its code; unfinished where it has no time of its end."""
    new = added(run_id, conversation_id=conversation_id)
    entries: list[Entry] = [
        CodeStored(code=code, blob=code.encode()),
        RunAdded(spec=replace(new.spec, code=code), command=new.command, at=new.at),
        *(a_round(version, run_id) for version in range(1, rounds + 1)),
    ]
    if ended_at is not None:
        last = changed(rounds + 1, run_id, end=an_end(run_id))
        entries.append(replace(last, at=ended_at))
    return entries


def stored(path: Path, *runs: Sequence[Entry], newest: str = "newest") -> None:
    """A closed journal of these runs, and of a last one that has just ended."""
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [entry for run in (*runs, a_run(newest, ended_at=NOW)) for entry in run])
    journal.close()


def runs_of(path: Path) -> list[str]:
    return [heading.run_id for heading in JournalReader(path).headings()]


@contextmanager
def held_by_another_process(path: Path) -> Iterator[int]:
    """A process works on a journal; gives its pid."""
    command = [sys.executable, "-m", "tests.stores.children", "hold_the_store", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child.pid
        child.communicate(input="")


def test_runs_that_ended_long_enough_ago_go_with_all_that_is_theirs(path: Path) -> None:
    stored(path, a_run("old", ended_at=100.0, code="old"), a_run("young", ended_at=900.0))
    before = contents_of(JournalReader(path))

    cleared = expire(path, ended_before=500.0)

    assert (cleared.runs, cleared.code) == (1, 1)
    assert runs_of(path) == ["young", "newest"]
    reader = JournalReader(path)
    assert reader.load_run("old") is None
    assert reader.load_conversation("talk-of-old") == []
    assert reader.load_code("old") is None
    assert reader.load_code("c0de") == b"c0de"
    # What is left is as it was, to the byte and to the position.
    after = contents_of(reader)
    assert after["runs"] == before["runs"][1:]
    assert after["events"] == [event for event in before["events"] if event[1] != "old"]
    journal = SqliteJournal(path)
    left = {
        table: journal._writer.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("runs", "records", "messages", "results", "snapshots", "code")
    }
    journal.close()
    # Two runs: their submissions and changes, their tasks and rounds, their ends.
    assert left == {
        "runs": 2, "records": 8, "messages": 10, "results": 2, "snapshots": 0, "code": 1,
    }  # fmt: skip


def test_what_is_removed_bit_by_bit_leaves_its_sum_and_no_log(path: Path) -> None:
    ages = [100.0, 200.0, 300.0]
    stored(path, *(a_run(f"old-{at:.0f}", ended_at=at) for at in ages))
    logs = [log_of(path, f"old-{at:.0f}") for at in ages]
    for at in ages:
        RunLog(path, f"old-{at:.0f}").append("printed\n")
    removed = 0.0
    for count, at in enumerate(ages, start=1):
        assert expire(path, ended_before=at + 1).runs == 1
        removed += an_end().usage.cost_usd
        journal = SqliteJournal(path)
        assert journal.removed_cost_usd() == pytest.approx(removed)
        journal.close()
        assert [log.exists() for log in logs] == [place >= count for place in range(len(ages))]


def test_artifacts_go_with_their_conversation_and_not_before(path: Path) -> None:
    stored(path, a_run("old", ended_at=100.0), a_run("young", ended_at=900.0))
    folder = ArtifactFolder(path)
    # The last one is of a conversation that was removed when the process died.
    for conversation in ("talk-of-old", "talk-of-young", "talk-of-nobody"):
        folder.of(conversation, ArtifactsConfig()).put([b"a long result"])

    expire(path, ended_before=500.0)

    assert not folder_of(path, "talk-of-old").exists()
    assert not folder_of(path, "talk-of-nobody").exists()
    assert len(list(folder_of(path, "talk-of-young").iterdir())) == 1


def test_what_is_removed_at_once_leaves_the_sum_of_it_all(path: Path) -> None:
    stored(path, *(a_run(f"old-{number}", ended_at=100.0) for number in range(3)))

    assert expire(path, ended_before=500.0).runs == 3

    journal = SqliteJournal(path)
    assert journal.removed_cost_usd() == pytest.approx(3 * an_end().usage.cost_usd)
    journal.close()


def test_a_conversation_of_several_runs_goes_whole_with_the_cost_and_the_log_of_each(
    path: Path,
) -> None:
    talks = [("a", "talk"), ("b", "talk"), ("c", "other talk"), ("d", "talk")]
    stored(path, *(a_run(run, conversation_id=talk, code=run) for run, talk in talks))
    for run, _ in talks:
        RunLog(path, run).append("printed\n")

    cleared = expire(path, ended_before=101.0)

    assert (cleared.runs, cleared.code) == (4, 4)
    assert runs_of(path) == ["newest"]
    assert list((path.parent / "logs").iterdir()) == []
    journal = SqliteJournal(path)
    assert journal.removed_cost_usd() == pytest.approx(4 * an_end().usage.cost_usd)
    journal.close()
    assert expire(path, ended_before=101.0) == Cleared()


def test_what_changed_just_at_the_time_stays(path: Path) -> None:
    stored(path, a_run("old", ended_at=100.0), a_run("at the time", ended_at=500.0))

    assert expire(path, ended_before=500.0).runs == 1

    assert runs_of(path) == ["at the time", "newest"]


def test_a_run_that_was_taken_up_after_it_was_changed_is_as_old_as_that(path: Path) -> None:
    again = added("again", command="later", again=True, at=700.0)
    ended = replace(changed(4, "again", end=an_end("again")), at=100.0)
    stored(path, [*a_run("again", ended_at=None), ended, again])

    assert expire(path, ended_before=500.0).runs == 0
    assert expire(path, ended_before=701.0).runs == 1


def test_the_snapshot_of_a_run_that_goes_on_stays(path: Path) -> None:
    snapshot = SnapshotTaken(run_id="long", version=2, values={"harness.turn_count": 7})
    stored(path, a_run("old"), [*a_run("long", ended_at=None), snapshot])

    assert expire(path, ended_before=1e12).runs == 1

    run = JournalReader(path).load_run("long")
    assert run is not None
    assert run.state.values == {"harness.turn_count": 7}


def room_of(monkeypatch: pytest.MonkeyPatch, free_bytes: float) -> None:
    """A file system with so much room."""
    usage = shutil.disk_usage("/")._replace(free=int(free_bytes))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


def test_a_file_stays_as_large_as_it_is_where_there_is_no_room_for_another(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(path, a_run("large", rounds=1000), a_run("kept", rounds=500, ended_at=900.0))
    before = path.stat().st_size
    room_of(monkeypatch, 0)
    assert expire(path, ended_before=500.0) == Cleared(runs=1, code=0, freed_bytes=0)
    kept = contents_of(JournalReader(path))
    connection = sqlite3.connect(path)
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    connection.close()
    # Once for what is left of it, and once for the log of that.
    room_of(monkeypatch, 2 * (pages - free) * size)
    with pytest.raises(StoreError, match="no room to compact it; make room for twice its size"):
        compact(path)
    assert expire(path, ended_before=500.0) == Cleared()
    assert path.stat().st_size == before
    assert not is_held(path)

    room_of(monkeypatch, 2 * (pages - free) * size + 1)
    assert expire(path, ended_before=500.0).freed_bytes == before - path.stat().st_size > 0
    assert contents_of(JournalReader(path)) == kept


@pytest.mark.parametrize("clear", [compact, lambda path: expire(path, ended_before=1e12)])
def test_a_journal_that_cannot_be_cleared_is_free_for_others(path: Path, clear: object) -> None:
    assert callable(clear)
    path.write_text("no journal")
    for held_before in (False, True):
        if held_before:
            hold(path)
        with pytest.raises(StoreError, match="not a journal"):
            clear(path)
        assert is_held(path) == held_before
        assert open_files(path.parent) == [lock_of(path)] * held_before
    release(path)


def test_unfinished_and_parked_runs_stay_however_old_they_are(path: Path) -> None:
    parked = [*a_run("parked", ended_at=None), added("parked", command="", again=True)]
    stored(path, a_run("unfinished", ended_at=None), parked)
    before = contents_of(JournalReader(path))

    assert expire(path, ended_before=1e12).runs == 0

    assert contents_of(JournalReader(path)) == before


@pytest.mark.parametrize("younger", [None, 900.0], ids=["unfinished", "younger"])
def test_a_conversation_that_goes_on_stays_whole(path: Path, younger: float | None) -> None:
    stored(
        path,
        a_run("first", conversation_id="talk"),
        a_run("second", conversation_id="talk", ended_at=younger),
    )
    log = JournalReader(path).load_conversation("talk")

    assert expire(path, ended_before=500.0).runs == 0

    assert JournalReader(path).load_conversation("talk") == log
    assert len(log) == 8


def test_positions_are_never_used_twice(path: Path) -> None:
    stored(path, a_run("old"))
    newest = JournalReader(path).position()

    cleared = expire(path, ended_before=1e12)

    assert cleared.runs == 1
    assert runs_of(path) == ["newest"], "the newest stays, for positions go on from it"
    journal = SqliteJournal(path)
    assert journal.position() == newest
    assert journal.commit(journal.begin_term(), [added("next")]) == [newest + 1]
    journal.close()


def test_freed_pages_are_given_back_where_they_are_many(path: Path) -> None:
    stored(path, a_run("large", rounds=2000), a_run("small", ended_at=900.0))
    before = path.stat().st_size

    cleared = expire(path, ended_before=500.0)

    after = path.stat().st_size
    assert after < before / 4
    assert cleared.freed_bytes == before - after
    assert [file.name for file in sorted(path.parent.iterdir())] == ["runs.db", "runs.db.lock"]


def test_few_freed_pages_are_left_for_what_comes_and_given_back_by_compact(path: Path) -> None:
    stored(path, a_run("large", rounds=1000, ended_at=900.0), a_run("small", rounds=50))
    before = path.stat().st_size

    assert expire(path, ended_before=500.0) == Cleared(runs=1, code=0, freed_bytes=0)
    kept = contents_of(JournalReader(path))
    cleared = compact(path)

    assert 0 < cleared.freed_bytes == before - path.stat().st_size
    assert contents_of(JournalReader(path)) == kept


def test_compacting_drops_code_that_no_run_names(path: Path) -> None:
    journal = SqliteJournal(path)
    term = journal.begin_term()
    heads = [CodeStored(code=request_name(code), blob=b"head") for code in ("used", "unused")]
    unused = CodeStored(code="unused", blob=b"x")
    journal.commit(term, [*a_run("run", code="used"), unused, *heads])
    journal.close()

    assert compact(path).code == 1

    reader = JournalReader(path)
    assert code_of(reader, "used") == {"used": b"used", request_name("used"): b"head"}
    assert code_of(reader, "unused") == {}


def test_a_run_loses_its_snapshot_when_it_ends(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    snapshot = SnapshotTaken(run_id="run-1", version=1, values={"harness.usage": {}})
    journal.commit(term, [added(), a_round(1), snapshot])

    journal.commit(term, [changed(2, end=an_end())])

    assert journal._writer.execute("SELECT count(*) FROM snapshots").fetchone() == (0,)
    run = journal.load_run("run-1")
    assert run is not None
    # Added up from the changes again.
    assert run.state.values == {"harness.usage": {"model_calls": 1, "tool_calls": 1}}


@pytest.mark.parametrize("clear", [compact, lambda path: expire(path, ended_before=1e12)])
def test_a_store_that_a_command_works_on_is_refused(path: Path, clear: object) -> None:
    assert callable(clear)
    stored(path, a_run("old"))
    before = path.read_bytes()
    with held_by_another_process(path) as pid:
        with pytest.raises(StoreInUseError, match=f"process {pid} works on it"):
            clear(path)
        assert path.read_bytes() == before
    clear(path)


def test_who_is_refused_is_told_who_holds_it_now_and_not_who_did(path: Path) -> None:
    hold(path)
    release(path)
    with (
        held_by_another_process(path) as pid,
        pytest.raises(StoreInUseError, match=f"the process {pid} works on it"),
    ):
        hold(path)


def test_a_lock_names_whoever_took_it_last_and_nobody_else(path: Path) -> None:
    # Where the kernel does not tell, this is all that another command has.
    for _ in range(5):
        hold(path)
        assert lock_of(path).read_text() == str(os.getpid())
        release(path)


def test_the_lock_is_kept_where_the_caller_held_it(path: Path) -> None:
    stored(path)
    expire(path, ended_before=1.0)
    assert not is_held(path)
    hold(path)

    expire(path, ended_before=1.0)

    assert is_held(path)
    release(path)


@pytest.mark.parametrize("death", ["die_while_removing", "die_while_giving_back"])
def test_a_process_killed_while_it_clears_leaves_a_good_journal(path: Path, death: str) -> None:
    names = [f"old-{n}" for n in range(120)]
    stored(path, *(a_run(name, rounds=3) for name in names))
    for name in names:
        RunLog(path, name).append("printed\n")
    before = contents_of(JournalReader(path))
    command = [sys.executable, "-m", "tests.stores.children", death, str(path)]

    killed = subprocess.run(command, cwd=ROOT, timeout=60, check=False)

    assert killed.returncode == -signal.SIGKILL
    after = contents_of(JournalReader(path))
    # The first hundred conversations, as one step takes them, and none of the second.
    gone = 100 if death == "die_while_removing" else 0
    assert len(after["runs"]) == 121 - gone
    left = {run["run_id"] for run in after["runs"]}
    assert after["runs"] == [run for run in before["runs"] if run["run_id"] in left]
    assert after["events"] == [event for event in before["events"] if event[1] in left]
    assert [name for name in names if log_of(path, name).exists()] == sorted(
        left - {"newest"}, key=names.index
    )
    assert expire(path, ended_before=1e12).runs == 120 - gone
    assert runs_of(path) == ["newest"]
    assert list((path.parent / "logs").iterdir()) == []
    journal = SqliteJournal(path)
    assert journal.removed_cost_usd() == pytest.approx(120 * an_end().usage.cost_usd)
    journal.close()


def test_nothing_is_made_where_there_is_no_journal(tmp_path: Path) -> None:
    assert expire(tmp_path / "a" / "runs.db", ended_before=NOW) == Cleared()
    with pytest.raises(StoreError, match="there is no such file"):
        compact(tmp_path / "runs.db")

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def home_with_old_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a journal of a run that is too old, and of one that is not."""
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    monkeypatch.delenv("HARNESS_KEEP_DAYS", raising=False)
    cut = time.time() - DAYS_KEPT * SECONDS_PER_DAY
    stored(tmp_path / "runs.db", a_run("old", ended_at=cut - 60), a_run("kept", ended_at=cut + 60))
    return tmp_path


def taken_and_given_back() -> Path:
    path = free_journal()
    release(path)
    return path


def test_a_journal_of_the_home_keeps_runs_for_so_many_days(home_with_old_runs: Path) -> None:
    assert runs_of(taken_and_given_back()) == ["kept", "newest"]


def test_a_journal_of_the_home_is_looked_through_once_a_day(home_with_old_runs: Path) -> None:
    path = taken_and_given_back()
    stored(path, a_run("old2"), newest="newest2")
    assert "old2" in runs_of(taken_and_given_back())
    yesterday = time.time() - SECONDS_PER_DAY - 1
    os.utime(home_with_old_runs / "runs.db.expired", (yesterday, yesterday))
    assert "old2" not in runs_of(taken_and_given_back())
    # From then on for a day again.
    stored(path, a_run("old3"), newest="newest3")
    assert "old3" in runs_of(taken_and_given_back())
    assert path.with_name("runs.db.expired").stat().st_mode & 0o777 == 0o600


def test_all_runs_are_kept_where_that_is_asked_for(
    home_with_old_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_KEEP_DAYS", "0")
    assert runs_of(taken_and_given_back()) == ["old", "kept", "newest"]


def test_a_part_of_a_day_is_a_number_of_days(monkeypatch: pytest.MonkeyPatch) -> None:
    for named, days in ((None, 30.0), ("", 30.0), ("0.5", 0.5), ("0", 0.0), ("1e3", 1000.0)):
        monkeypatch.delenv("HARNESS_KEEP_DAYS", raising=False)
        if named is not None:
            monkeypatch.setenv("HARNESS_KEEP_DAYS", named)
        assert days_kept() == days


@pytest.mark.parametrize("days", ["soon", "-1", "inf", "nan"])
def test_days_that_are_none_are_bad_input(days: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_KEEP_DAYS", days)
    with pytest.raises(BadInputError, match="HARNESS_KEEP_DAYS"):
        days_kept()
