"""What a killed cell has left, of whatever version, can be read, and goes on as it should."""

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.actors.local import LocalRuntime
from harness_actors.cli.app import app
from harness_actors.events import Repaired, RunResumed, RunStarted, TurnStarted
from harness_actors.replay import load_recording, replay
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.stores.schema import OLDEST, VERSION
from tests.actors.followers import opened, results
from tests.stores.killed_cells import (
    AT_WORK,
    FINISHED,
    LEDGER,
    OPEN,
    PARKED,
    QUEUED,
    SHELVES,
    WAREHOUSE,
    booked,
    shelved,
)

STORED = Path(__file__).parent / "data" / "cells"
VERSIONS = range(OLDEST, VERSION + 1)
REPLAYED = VERSIONS[2:]
"""Those before were written by other rules: of open calls, and in other words."""
GOING_ON = [name for name in (*PARKED, *AT_WORK, *QUEUED) if name != "overtaken"]

UNKNOWN = {
    "parked-in-a-call": 1,
    "parked-before-a-call": 1,
    "within-a-message": 1,
    "behind-an-effect": 2,
    "before-an-effect": 1,
    "talk-3": 1,
}
"""Calls whose outcome nobody knows, by run: those that were begun, or might have been."""

RESUMED = {"lost": 2, **dict.fromkeys(QUEUED, 0)}
"""How often a run went on that was cut, where not once."""

Harness = Callable[..., Result]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def warehouse(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all effects as the cell left it; nothing waits there any more."""
    effects = json.loads((STORED / f"v{version}.json").read_text())
    folder = tmp_path / "warehouse"
    (folder / SHELVES).mkdir(parents=True)
    (folder / LEDGER).write_text("".join(f"{line}\n" for line in effects[LEDGER]))
    for name in effects[SHELVES]:
        (folder / SHELVES / name).touch()
    (folder / OPEN).touch()
    monkeypatch.setenv(WAREHOUSE, str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path, version: int) -> Path:
    """The journal, with its write-ahead log beside it."""
    for packed in STORED.glob(f"v{version}.db*.gz"):
        name = packed.name.removesuffix(".gz").replace(f"v{version}", "runs")
        (tmp_path / name).write_bytes(gzip.decompress(packed.read_bytes()))
    return tmp_path / "runs.db"


@pytest.fixture
def harness(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """`harness ctl run` on that journal."""
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    runner = CliRunner()

    def run(*words: str) -> Result:
        command = ["ctl", "run", *words, "--store", str(store)]
        return runner.invoke(app, command, catch_exceptions=False)

    return run


async def taken_up(store: Path) -> dict[str, HarnessResult]:
    """All runs that can go on, at their ends."""
    async with opened("local", store, command="the next") as runtime, asyncio.timeout(60):
        assert isinstance(runtime, LocalRuntime)
        cursor = await runtime.position()
        await runtime.resume(GOING_ON, secrets={})
        return await results(runtime, GOING_ON, cursor=cursor)


def ending_of(version: int, name: str) -> tuple[str, str]:
    if (version, name) == (1, "spent"):
        # It knew no budget of several runs.
        return ("limit", "cost")
    return FINISHED[name]


def test_there_is_what_a_killed_cell_left_for_each_version() -> None:
    assert {file.name for file in STORED.glob("v*")} == {
        f"v{version}.{rest}" for version in VERSIONS for rest in ("db.gz", "db-wal.gz", "json")
    }


def test_the_list_says_where_each_run_stands(harness: Harness, version: int) -> None:
    listed = harness("list", "--json")

    assert listed.exit_code == 0
    said = {run["run_id"]: (run["status"], run["reason"]) for run in json.loads(listed.stdout)}
    assert said == {
        **{name: ending_of(version, name) for name in FINISHED},
        **dict.fromkeys(PARKED, ("parked", None)),
        **dict.fromkeys((*AT_WORK, *QUEUED), ("interrupted", None)),
    }


def test_runs_are_shown_and_exported(harness: Harness, store: Path) -> None:
    before = {file.name: file.read_bytes() for file in store.parent.glob("runs.db*")}

    for name in ("talk-2", "failed", "spent", *PARKED[:2], *AT_WORK, QUEUED[0]):
        shown = harness("show", name, "--json")
        assert shown.exit_code == 0
        assert json.loads(shown.stdout)["run_id"] == name
    exported = harness("export", "--status", "done")

    assert exported.exit_code == 0
    talks = [json.loads(line)["messages"] for line in exported.stdout.splitlines()]
    tasks = Counter(m["content"] for talk in talks for m in talk if m["role"] == "user")
    done = [name for name, ending in FINISHED.items() if ending[0] == "done"]
    # Whole conversations, with what others have said there.
    assert tasks == Counter(f"Please {name}" for name in (*done, "overtaken", "talk-3"))
    assert {file.name: file.read_bytes() for file in store.parent.glob("runs.db*")} == before


@pytest.mark.parametrize("version", REPLAYED, indirect=True)
async def test_runs_are_replayed_as_far_as_they_had_come(store: Path) -> None:
    journal = JournalReader(store)
    for heading in journal.headings():
        replayed = await replay(load_recording(journal, heading.run_id))

        assert not replayed.differences, heading.run_id
        assert replayed.same


async def test_all_that_can_go_on_comes_to_its_end_with_each_effect_once(
    store: Path, warehouse: Path
) -> None:
    ended = await taken_up(store)

    assert set(ended) == set(GOING_ON)
    assert {(end.status, end.reason.kind) for end in ended.values()} == {("done", "completed")}
    assert sorted((warehouse / LEDGER).read_text().splitlines()) == booked()
    assert sorted(path.name for path in (warehouse / SHELVES).iterdir()) == shelved()


async def test_a_run_goes_on_in_its_turn_and_learns_which_outcomes_are_unknown(
    store: Path, warehouse: Path
) -> None:
    ended = await taken_up(store)

    journal = JournalReader(store)
    for name in GOING_ON:
        kinds = Counter(type(e.event) for e in journal.load_events(0, run_id=name, limit=1000))
        assert kinds[Repaired] == UNKNOWN.get(name, 0), name
        assert kinds[RunStarted] == kinds[TurnStarted] == 1, name
        assert kinds[RunResumed] == RESUMED.get(name, 1), name
        assert ended[name].turn_count == 1


def test_a_run_that_was_overtaken_in_its_conversation_is_left_as_it_is(
    harness: Harness, store: Path, warehouse: Path
) -> None:
    refused = harness("resume", "overtaken")

    assert refused.exit_code == 2
    assert "run 'overtaker' has" in refused.stderr
    assert (warehouse / LEDGER).read_text().count("overtaken a") == 1
    (heading,) = [h for h in JournalReader(store).headings() if h.run_id == "overtaken"]
    assert heading.phase == "parked"


async def test_what_was_over_stays_as_it_was(store: Path, warehouse: Path) -> None:
    def over() -> dict[str, Any]:
        return {h.run_id: h.end for h in JournalReader(store).headings() if h.run_id in FINISHED}

    before = over()

    await taken_up(store)

    assert over() == before


async def test_what_went_on_is_listed_and_exported_as_done(
    harness: Harness, store: Path, warehouse: Path
) -> None:
    await taken_up(store)

    listed = await asyncio.to_thread(harness, "list", "--status", "done", "--json")
    exported = await asyncio.to_thread(harness, "export", *GOING_ON)

    done = {name for name, ending in FINISHED.items() if ending[0] == "done"}
    assert {run["run_id"] for run in json.loads(listed.stdout)} == {*done, *GOING_ON}
    assert exported.exit_code == 0
