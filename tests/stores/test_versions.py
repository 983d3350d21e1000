"""Journals of every version are read as they were written, and brought up to the newest."""

import gzip
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_actors.errors import StoreError
from harness_actors.records import RunAdded
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import expire
from harness_actors.stores.migrations import STEPS, migrate
from harness_actors.stores.schema import OLDEST, VERSION
from tests.stores.contents import contents_of
from tests.stores.entries import a_round, added, an_end, changed
from tests.stores.shapes import shape_of
from tests.stores.stored_runs import make_journal

STORED = Path(__file__).parents[1] / "data" / "journals"
VERSIONS = range(OLDEST, VERSION + 1)
"""The one that is written is the last."""

CASES = [(version, kind) for version in VERSIONS for kind in ("", "-killed")]


def unpacked(version: int, kind: str, folder: Path) -> Path:
    """A stored journal; one of a killed process has its write-ahead log beside it."""
    for packed in STORED.glob(f"v{version}{kind}.db*.gz"):
        name = packed.name.removesuffix(".gz").replace(f"v{version}{kind}", "runs")
        (folder / name).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder / "runs.db"


def expected(version: int) -> dict[str, Any]:
    """What is in the stored journal, as the program that made it has read it."""
    plain: dict[str, Any] = orjson.loads(
        gzip.decompress((STORED / f"v{version}.json.gz").read_bytes())
    )
    return plain


def version_of(path: Path) -> int:
    """Of a file that nobody has open."""
    return int.from_bytes(path.read_bytes()[60:64], "big")


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def test_there_is_a_stored_journal_for_each_version_and_a_step_between_any_two() -> None:
    assert set(STEPS) == set(VERSIONS[:-1])
    for version in VERSIONS:
        assert {file.name for file in STORED.glob(f"v{version}*")} == {
            f"v{version}{rest}.gz" for rest in (".db", ".json", "-killed.db", "-killed.db-wal")
        }


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_a_stored_journal_holds_what_it_held(version: int, kind: str, tmp_path: Path) -> None:
    path = unpacked(version, kind, tmp_path)
    journal = SqliteJournal(path)

    assert contents_of(journal) == expected(version)

    journal.close()
    assert version_of(path) == VERSION


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stored_journal_has_runs_of_every_kind(version: int) -> None:
    runs = expected(version)["runs"]

    assert {run["end"] and run["end"]["status"] for run in runs} == {
        None,
        "done",
        "limit",
        "cancelled",
    }
    assert any(run["end"] is None and run["command"] == "" for run in runs)
    assert any(run["end"] is None and run["values"]["harness.open_calls"] for run in runs)
    assert len({run["conversation_id"] for run in runs}) < len(runs)
    assert expected(version)["processes"]
    assert any(run["version"] > 64 for run in runs), "none has a snapshot"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_changes_of_a_killed_process_are_stored_in_its_log_alone(
    version: int, tmp_path: Path
) -> None:
    path = unpacked(version, "-killed", tmp_path)
    path.with_name("runs.db-wal").unlink()

    journal = SqliteJournal(path)

    assert journal.position() < expected(version)["position"]
    journal.close()


async def test_what_is_written_changes_only_with_the_version(tmp_path: Path) -> None:
    """A program of the same version must read it, and one of an earlier version refuse it.

    What fails here needs a new version: its number in `schema.py`, a step to it, and stored
    journals of it. Those of a version that no release has written yet are made anew instead.
    """
    stored = shape_of(unpacked(VERSION, "", tmp_path))
    written = tmp_path / "written.db"

    await make_journal(written, tmp_path / "warehouse")

    assert shape_of(written) == stored


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_a_stored_journal_goes_on(version: int, kind: str, tmp_path: Path) -> None:
    path = unpacked(version, kind, tmp_path)
    before = expected(version)
    (unfinished,) = [run for run in before["runs"] if run["command"] and run["end"] is None]
    run_id, at = unfinished["run_id"], unfinished["version"]
    journal = SqliteJournal(path)
    term = journal.begin_term()
    assert term > 1
    stored = journal.load_run(run_id)
    assert stored is not None
    again = RunAdded(spec=stored.spec, command="the next", at=1.0, again=True)

    positions = journal.commit(term, [again, a_round(at + 1, run_id), added("a new one")])
    journal.forget_processes(term)

    first = before["position"] + 1
    assert positions == [first, first + 1, first + 2]
    journal.close()
    journal = SqliteJournal(path)
    (grown,) = journal.load_unfinished("the next")
    assert [m.encoded.decode() for m in grown.state.log[:-2]] == [m[1] for m in unfinished["log"]]
    assert grown.state.log[-1].text == f"def f{at + 1}(): ..."
    assert grown.state.values["harness.turn_count"] == unfinished["values"]["harness.turn_count"]
    assert journal.load_processes() == []
    others = [run for run in contents_of(journal)["runs"] if run["run_id"] != run_id]
    assert others[:-1] == [run for run in before["runs"] if run["run_id"] != run_id]
    journal.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_removed_from_a_stored_journal_leaves_what_it_cost(
    version: int, tmp_path: Path
) -> None:
    path = unpacked(version, "", tmp_path)
    journal = SqliteJournal(path)
    assert journal.removed_cost_usd() == 0.0
    ends = [changed(1, run_id, end=an_end(run_id)) for run_id in ("a new one", "the newest")]
    journal.commit(journal.begin_term(), [*(added(end.run_id) for end in ends), *ends])
    journal.close()

    removed = expire(path, ended_before=1e12).runs

    assert removed > 1
    journal = SqliteJournal(path)
    assert len(journal.headings()) == len(expected(version)["headings"]) + 2 - removed
    assert journal.removed_cost_usd() >= an_end().usage.cost_usd
    assert journal.load_run("the newest") is not None
    journal.close()


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_who_only_reads_leaves_a_stored_journal_as_it_is(
    version: int, kind: str, tmp_path: Path
) -> None:
    path = unpacked(version, kind, tmp_path)
    before = files_of(path)

    reader = JournalReader(path)

    assert contents_of(reader) == expected(version)
    reader.close()
    assert files_of(path) == before


def test_each_step_is_done_once_and_in_order(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute("PRAGMA user_version = 1")
    steps = {
        version: lambda c, version=version: c.execute(f"CREATE TABLE step_{version} (x)")
        for version in (1, 2, 3)
    }

    migrate(connection, steps=steps, newest=4)
    migrate(connection, steps=steps, newest=4)

    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    assert names == ["step_1", "step_2", "step_3"]
    assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    connection.close()


def test_a_step_that_fails_leaves_the_version_before_it_whole(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("CREATE TABLE kept (x)")

    def fails(to: sqlite3.Connection) -> None:
        to.execute("DROP TABLE kept")
        to.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, steps={1: lambda to: None, 2: fails}, newest=3)

    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    connection.close()


KILLED_IN_A_STEP = """
import os, signal, sqlite3, sys
from harness_actors.stores.expiry import expire
from harness_actors.stores.migrations import migrate

def dies(connection):
    connection.execute("PRAGMA cache_spill = 1")
    connection.execute("UPDATE messages SET encoded = zeroblob(5000)")
    os.kill(os.getpid(), signal.SIGKILL)

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA cache_size = 5")
migrate(connection, steps={1: dies})
"""


def test_a_process_killed_in_a_step_leaves_the_version_before_it_whole(tmp_path: Path) -> None:
    path = unpacked(1, "", tmp_path)

    killed = subprocess.run(
        [sys.executable, "-c", KILLED_IN_A_STEP, str(path)], timeout=60, check=False
    )

    assert killed.returncode == -9
    assert path.with_name("runs.db-wal").stat().st_size > 100_000, "nothing was half done"
    assert version_of(path) == 1
    journal = SqliteJournal(path)
    assert contents_of(journal) == expected(1)
    journal.close()
    assert version_of(path) == VERSION


def test_two_that_open_an_earlier_version_at_once_both_get_it(tmp_path: Path) -> None:
    path = unpacked(1, "-killed", tmp_path)
    command = [sys.executable, "-m", "tests.stores.children", "begin_a_term", str(path)]
    root = Path(__file__).parents[2]

    pair = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in "ab"]

    terms = [int(child.communicate(timeout=60)[0]) for child in pair]
    assert sorted(terms) == [min(terms), min(terms) + 1]


def test_a_version_from_before_the_first_or_after_the_newest_is_refused(tmp_path: Path) -> None:
    source = unpacked(1, "", tmp_path)
    for version in (0, VERSION + 1):
        path = tmp_path / f"of-{version}.db"
        shutil.copyfile(source, path)
        with path.open("r+b") as file:
            file.seek(60)
            file.write(version.to_bytes(4, "big"))
        before = path.read_bytes()
        for opened in (SqliteJournal, JournalReader):
            with pytest.raises(StoreError, match=f"version {version}, and this program knows 1"):
                opened(path)
        assert path.read_bytes() == before
