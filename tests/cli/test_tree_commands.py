"""`harness ctl run`, of runs that others have begun."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from harness_actors.cli.ctl import control
from harness_actors.events import ChildEnded, ChildrenStarted, RunParked
from harness_actors.stores import JournalReader
from tests.cli.delegating_agents import a_boss, parked_tree
from tests.replay.recorded_runs import FIRST_COMMAND, Session, done, opened_locally, program

Harness = Callable[..., Result]

TREE = "a1b2c3"
OTHER = "ffff00"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with a tree that was put aside, and a run that is over."""
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    path = tmp_path / "runs.db"
    asyncio.run(parked_tree(path, TREE))
    asyncio.run(Session(path, program([done()]), {}, "say done", OTHER, OTHER).to_its_end())
    return path


@pytest.fixture
def harness(store: Path) -> Harness:
    runner = CliRunner()
    return lambda *words: runner.invoke(app, words, catch_exceptions=False)


def as_json(result: Result) -> Any:
    return json.loads(result.stdout)


def end_of(store: Path, run_id: str) -> str | None:
    result = JournalReader(store).load_result(run_id)
    return None if result is None else f"{result.status}({result.reason.kind})"


def test_a_list_shows_runs_that_others_have_begun_only_in_trees(harness: Harness) -> None:
    assert [run["run_id"] for run in as_json(harness("ctl", "run", "list", "--json"))] == [
        TREE,
        OTHER,
    ]

    listed = as_json(harness("ctl", "run", "list", "--tree", "--json"))
    assert [(run["run_id"], run.get("root"), run["status"]) for run in listed] == [
        (TREE, None, "parked"),
        (f"{TREE}.1", TREE, "done"),
        (f"{TREE}.2", TREE, "parked"),
        (OTHER, None, "done"),
    ]
    lines = harness("ctl", "run", "list", "--tree").stdout.splitlines()[1:]
    assert [line[:10] for line in lines] == ["a1b2c3    ", "  a1b2c3.1", "  a1b2c3.2", "ffff00    "]
    assert [line.split()[-1] for line in lines] == ["around", "left", "right", "done"]


def test_a_tree_is_listed_where_one_of_its_runs_stands_so(harness: Harness) -> None:
    def listed(*words: str) -> list[str]:
        return [run["run_id"] for run in as_json(harness("ctl", "run", "list", *words, "--json"))]

    assert listed("--status", "done") == [OTHER]
    assert listed("--status", "done", "--tree", "--limit", "2") == [
        TREE,
        f"{TREE}.1",
        f"{TREE}.2",
        OTHER,
    ]
    assert listed("--tree", "--limit", "1") == [OTHER]


def test_the_beginning_of_an_id_means_the_run_and_not_those_that_it_has_begun(
    harness: Harness,
) -> None:
    def shown(run_id: str) -> str:
        return str(as_json(harness("ctl", "run", "show", run_id, "--json"))["run_id"])

    assert shown("a1") == TREE
    assert shown(f"{TREE}.1") == f"{TREE}.1"
    several = harness("ctl", "run", "show", f"{TREE}.")
    assert several.exit_code == 2
    assert f"2 runs begin with '{TREE}.': {TREE}.1, {TREE}.2" in several.stderr
    unknown = harness("ctl", "run", "show", "zz")
    assert f"the newest are {OTHER}, {TREE};" in unknown.stderr + ";"


def test_a_run_names_those_that_it_has_begun_and_they_name_it(harness: Harness) -> None:
    top = as_json(harness("ctl", "run", "show", TREE, "--json"))
    child = as_json(harness("ctl", "run", "show", f"{TREE}.2", "--json"))

    assert [tuple(child.values()) for child in top["children"]] == [
        (f"{TREE}.1", "scout", "call_2_0", "done", "answered"),
        (f"{TREE}.2", "scout", "call_2_1", "parked", None),
    ]
    assert "parent" not in top
    assert (top["usage"]["model_calls"], top["usage_tree"]["model_calls"]) == (1, 3)
    assert child["parent"] == {
        "run_id": TREE,
        "call_id": "call_2_1",
        "agent": "scout",
    }
    assert "children" not in child
    told = harness("ctl", "run", "show", TREE).stdout
    assert f"{TREE}.1 scout done(answered)" in told
    assert f"{TREE}.2 scout parked" in told
    assert "with children" in told
    told = harness("ctl", "run", "show", f"{TREE}.2").stdout
    assert f"{TREE}, with its call call_2_1" in told


def test_the_conversation_of_a_child_has_its_own_prompt_and_tools(harness: Harness) -> None:
    full = harness("ctl", "run", "show", f"{TREE}.1", "--full").stdout
    (line,) = harness("ctl", "run", "export", f"{TREE}.1").stdout.splitlines()
    (top,) = harness("ctl", "run", "export", TREE).stdout.splitlines()

    assert "── 1 system\nYou look.\n" in full
    assert [one["content"] for one in json.loads(line)["messages"]] == [
        "You look.",
        "left",
        "left: nothing",
    ]
    assert [one["function"]["name"] for one in json.loads(line)["tools"]] == ["read", "hang"]
    tools = [one["function"]["name"] for one in json.loads(top)["tools"]]
    assert tools == ["read", "hang", "scout", "work_complete"]
    prompt = json.loads(top)["messages"][0]["content"]
    assert prompt.startswith("You lead.\n\nYou can delegate, by calling scout.")


def test_without_ids_no_child_is_exported(harness: Harness) -> None:
    exported = harness("ctl", "run", "export", "--format", "harness").stdout.splitlines()

    assert [json.loads(line)["run_id"] for line in exported] == [TREE, OTHER]


def test_a_child_that_is_cancelled_is_told_to_the_run_that_goes_on(
    harness: Harness, store: Path
) -> None:
    cancelled = harness("ctl", "run", "cancel", f"{TREE}.2")

    assert (cancelled.exit_code, cancelled.stdout) == (0, f"{TREE}.2: cancelled(user)\n")
    assert end_of(store, TREE) is None
    told = [one.event for one in JournalReader(store).load_events(0, run_id=TREE)]
    assert [(one.run_id, one.status) for one in told if isinstance(one, ChildEnded)] == [
        (f"{TREE}.1", "completed"),
        (f"{TREE}.2", "cancelled"),
    ]
    resumed = harness("ctl", "run", "resume", TREE, "--runtime", "local")
    assert resumed.exit_code == 0
    assert resumed.stdout.startswith("left: nothing | scout ended cancelled(user): cancelled by")


def test_with_a_run_end_those_that_it_has_begun(harness: Harness, store: Path) -> None:
    assert harness("ctl", "run", "cancel", TREE).exit_code == 0
    assert end_of(store, f"{TREE}.1") == "done(answered)"
    assert end_of(store, f"{TREE}.2") == "cancelled(parent)"


def test_a_tree_goes_on_as_one(harness: Harness, store: Path) -> None:
    resumed = harness("ctl", "run", "resume", f"{TREE}.2", "--runtime", "local")

    assert f"run {TREE}.2 is one of the tree of {TREE}, all of which goes on" in resumed.stderr
    assert resumed.exit_code == 0
    # Nobody knows how far the call had come.
    assert resumed.stdout == "left: nothing | right: nothing\n"
    assert f"{TREE}.2 scout completed: " in resumed.stderr
    # What it does is told while it goes on.
    assert f"      {TREE}.2 " in resumed.stderr
    assert "with the 2 runs that it has begun: " in resumed.stderr
    again = harness("ctl", "run", "resume", f"{TREE}.2", "--runtime", "local", "--json")
    assert as_json(again)["run_id"] == f"{TREE}.2"


def test_a_tree_that_is_aside_is_told_so_of_each_of_its_runs(harness: Harness) -> None:
    paused = harness("ctl", "run", "pause", f"{TREE}.2", f"{TREE}.1")

    assert paused.exit_code == 0
    assert paused.stdout.splitlines() == [
        f"{TREE}.2: parked",
        f"  with the whole tree of {TREE}, which has begun it",
        f"{TREE}.1: was over: done(answered)",
    ]
    told = as_json(harness("ctl", "run", "pause", f"{TREE}.2", "--json"))
    assert told == {"run_id": f"{TREE}.2", "status": "parked", "root": TREE}


async def test_with_a_child_its_whole_tree_is_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    session = Session(store, a_boss(), {}, "look around", TREE, TREE)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, ChildrenStarted), runtime)

        async def our_cell(*_: object) -> object:
            return runtime

        monkeypatch.setattr(control, "_cell_of", our_cell)
        headings, served = await control.pause_runs(store, [f"{TREE}.2"], None, now=True)
        await session.until(lambda event: isinstance(event, RunParked), runtime)

    assert {run_id: one.phase for run_id, one in headings.items()} == {
        TREE: "parked",
        f"{TREE}.2": "parked",
    }
    assert served == {TREE, f"{TREE}.2"}
