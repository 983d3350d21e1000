"""`harness ctl run`: what is in flight, and what to do about it."""

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.actors import Runtime
from harness_actors.cli.app import app
from harness_actors.cli.ctl import control, facts
from harness_actors.cli.ctl.facts import RunFacts, facts_of
from harness_actors.config import HarnessConfig
from harness_actors.errors import BadInputError
from harness_actors.events import InputAwaited, RunCompleted, RunParked, ToolCalled
from harness_actors.messages import Message
from harness_actors.records import RunHeading, WorkspaceSpec
from harness_actors.stores import JournalReader
from harness_actors.stores.expiry import expire
from harness_actors.stores.places import find_run
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel
from harness_actors.tools import ask_user
from tests.actors.followers import until
from tests.cli.commands import finished, started, works
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    SECOND_COMMAND,
    TOOLS,
    Session,
    done,
    opened_locally,
    program,
)
from tests.stores.test_expiry import held_by_another_process

Harness = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def harness(home: Path) -> Harness:
    runner = CliRunner()
    return lambda *words: runner.invoke(app, words, catch_exceptions=False)


@pytest.fixture
def runs(home: Path) -> Path:
    """A journal with a run that is over, one that was put aside, and one that broke off."""
    store = home / "runs.db"
    asyncio.run(_three_runs(store))
    return store


def _hangs_once(messages: Sequence[Message]) -> Reply:
    hung = any(message.role == "tool" for message in messages)
    return done("after all") if hung else Reply.call("hang")


async def _three_runs(store: Path) -> None:
    agent = program(ScriptedModel(_hangs_once))
    await Session(store, program([done()]), {}, "say done", "over1", "over1").to_its_end()
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        aside = Session(store, agent, {}, "wait aside", "aside1", "aside1")
        broken = Session(store, agent, {}, "break off", "broken1", "broken1")
        for session in (aside, broken):
            await session.submit(runtime)
            await session.until(lambda event: isinstance(event, ToolCalled), runtime)
        await runtime.stop(["aside1"], "park_now")
        await aside.until(lambda event: isinstance(event, RunParked), runtime)


def by_id(listed: Result) -> dict[str, dict[str, Any]]:
    return {run["run_id"]: run for run in json.loads(listed.stdout)}


# ---- looking ----------------------------------------------------------------------------


def test_a_run_that_is_removed_as_it_is_shown_is_told_as_removed(
    harness: Harness, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removing(store: Path, heading: RunHeading) -> RunFacts:
        assert expire(store, ended_before=time.time() + 60).runs == 1
        return facts_of(store, heading)

    monkeypatch.setattr(facts, "facts_of", removing)
    shown = harness("ctl", "run", "show", "over1")

    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "error: RUN_ID: run 'over1' was removed from" in shown.stderr
    assert "HARNESS_KEEP_DAYS" in shown.stderr


def test_a_list_says_where_each_run_stands(harness: Harness, runs: Path) -> None:
    table = harness("ctl", "run", "list")

    assert table.exit_code == 0
    lines = [line.split() for line in table.stdout.splitlines()[1:]]
    assert [line[:2] for line in lines] == [
        ["over1", "done(completed)"],
        ["aside1", "parked"],
        ["broken1", "interrupted"],
    ]
    assert "say done" in table.stdout
    # Nobody knows what its tokens cost.
    assert "-" in lines[0]
    assert "$" not in " ".join(lines[0])
    assert "tokens, cost -" in harness("ctl", "run", "show", "over1").stdout


def test_a_task_of_a_batch_is_known_by_its_id_or_else_by_its_text(
    harness: Harness, home: Path
) -> None:
    for run_id, task_id in (("named1", "task-7"), ("nameless1", "0f0f")):
        note = {"task_id": task_id, "task_hash": "0f0f", "attempt": 1}
        session = Session(home / "runs.db", program([done()]), {}, "say done", run_id, run_id, note)
        asyncio.run(session.to_its_end())

    listed = by_id(harness("ctl", "run", "list", "--json"))

    assert (listed["named1"]["what"], listed["nameless1"]["what"]) == ("task-7", "say done")
    shown = harness("ctl", "run", "show", "nameless1").stdout
    assert all(line == line.rstrip() for line in shown.splitlines())


@pytest.mark.parametrize("long", ["id", "task"])
def test_what_is_long_in_a_list_is_cut_alone(harness: Harness, home: Path, long: str) -> None:
    given = "b" * 400
    note = {"task_id": given if long == "task" else "one", "task_hash": "0f0f", "attempt": 1}
    run_id = given if long == "id" else "long1"
    for run, noted in (("short1" * 5, {}), (run_id, note)):
        session = Session(home / "runs.db", program([done()]), {}, "say done", run, run, noted)
        asyncio.run(session.to_its_end())

    short, cut = (line.split() for line in harness("ctl", "run", "list").stdout.splitlines()[1:])

    assert (short[:2], short[-2:]) == (["short1" * 5, "done(completed)"], ["say", "done"])
    assert cut[1] == "done(completed)"
    shown = cut[0] if long == "id" else cut[-1]
    assert shown == "b" * (len(shown) - 1) + "…"
    assert given in harness("ctl", "run", "list", "--json").stdout


def test_a_list_has_a_line_for_each_run(harness: Harness, home: Path) -> None:
    for run, task in (("a\nb", "plain"), ("c", "one\ntwo")):
        note = {"task_id": task, "task_hash": "0f0f", "attempt": 1}
        session = Session(home / "runs.db", program([done()]), {}, "say done", run, run, note)
        asyncio.run(session.to_its_end())

    lines = harness("ctl", "run", "list").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["run", "a␊b", "c"]
    assert [line.split()[-1] for line in lines] == ["what", "plain", "one␊two"]


def test_a_list_for_scripts(harness: Harness, runs: Path) -> None:
    listed = by_id(harness("ctl", "run", "list", "--json"))

    assert listed["over1"]["status"] == "done"
    assert listed["over1"]["usage"]["model_calls"] == 1
    assert listed["broken1"]["turns"] == 1
    assert listed["aside1"]["what"] == "wait aside"
    assert listed["aside1"]["store"] == str(runs)


@pytest.mark.parametrize(
    ("status", "ids"),
    [("parked", ["aside1"]), ("ended", ["over1"]), ("done", ["over1"]), ("failed", [])],
)
def test_a_list_of_those_alone(harness: Harness, runs: Path, status: str, ids: list[str]) -> None:
    assert list(by_id(harness("ctl", "run", "list", "--json", "--status", status))) == ids


def test_a_list_is_of_the_newest(harness: Harness, runs: Path) -> None:
    assert list(by_id(harness("ctl", "run", "list", "--json", "--limit", "1"))) == ["broken1"]
    assert len(by_id(harness("ctl", "run", "list", "--json", "--limit", "0"))) == 3


def test_a_word_that_is_no_status_is_bad_input(harness: Harness, runs: Path) -> None:
    listed = harness("ctl", "run", "list", "--status", "flying")

    assert listed.exit_code == 2
    assert "must be one of running, interrupted, parked, waiting, ended" in listed.stderr


def test_a_home_without_runs_is_no_error(harness: Harness, home: Path) -> None:
    listed = harness("ctl", "run", "list")

    assert (listed.exit_code, listed.stdout) == (0, "no runs\n")
    assert list(home.iterdir()) == []


def test_a_journal_that_cannot_be_read_is_left_out(harness: Harness, runs: Path) -> None:
    (runs.parent / "runs-2.db").write_text("something else " * 100)

    listed = harness("ctl", "run", "list", "--json")

    assert len(json.loads(listed.stdout)) == 3
    assert "left out: journal" in listed.stderr


def test_a_journal_that_was_named_and_cannot_be_read_is_an_error(
    harness: Harness, runs: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"this is no journal" * 100)
    listed = harness("ctl", "run", "list", "--store", str(bad), "--json")
    assert listed.exit_code == 1
    assert str(bad) in listed.stderr
    assert listed.stdout == ""


def test_the_journal_of_a_run_directory(harness: Harness, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "batch").mkdir()
    runs.rename(tmp_path / "batch" / "runs.db")

    assert by_id(harness("ctl", "run", "list", "--json")) == {}
    by_dir = by_id(harness("ctl", "run", "list", "--json", "--run-dir", str(tmp_path / "batch")))
    assert len(by_dir) == 3
    missing = harness("ctl", "run", "list", "--run-dir", str(tmp_path / "other"))
    assert missing.exit_code == 2
    assert "there is no journal" in missing.stderr


def test_one_run_is_shown_by_the_beginning_of_its_id(harness: Harness, runs: Path) -> None:
    shown = harness("ctl", "run", "show", "bro")

    assert shown.exit_code == 0
    assert "interrupted" in shown.stdout
    assert "hang (call_2_0)" in shown.stdout
    assert "stands at" in shown.stdout
    assert "max_turns=50" in shown.stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines() if line}
    assert (rows["agent"], rows["model"]) == (["agent"], ["scripted"])
    assert len(rows["set-up"][0]) == 12


def test_one_run_for_scripts(harness: Harness, runs: Path) -> None:
    over = json.loads(harness("ctl", "run", "show", "over1", "--json").stdout)
    broken = json.loads(harness("ctl", "run", "show", "broken1", "--json").stdout)

    assert over["result"]["status"] == "done"
    assert over["stands_at"] is None
    assert [message["role"] for message in over["last_messages"]] == ["user", "assistant", "tool"]
    assert broken["stands_at"]["executor"] == "agent_turn"
    assert [call["tool_name"] for call in broken["open_calls"]] == ["hang"]


async def test_the_calls_that_a_question_holds_are_shown_as_waiting(
    harness: Harness, tmp_path: Path
) -> None:
    store = tmp_path / "asks.db"
    asked = Reply.calls([("ask_user", {"question": "Which?"}), ("write", {"text": "a"})])
    session = Session(store, program([asked, done()], (*TOOLS, ask_user)))
    async with opened_locally(store, "first") as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)

    words = ("ctl", "run", "show", "run", "--json", "--store", str(store))
    shown = json.loads((await asyncio.to_thread(harness, *words)).stdout)

    assert [(call["tool_name"], call["disposition"]) for call in shown["open_calls"]] == [
        ("ask_user", "waiting"),
        ("write", "waiting"),
    ]

    cancel = ("ctl", "run", "cancel", "run", "--store", str(store))
    await asyncio.to_thread(harness, *cancel)
    over = json.loads((await asyncio.to_thread(harness, *words)).stdout)

    assert (over["result"]["status"], over["open_calls"]) == ("cancelled", [])


async def test_of_several_journals_the_newest_runs_are_told_first(tmp_path: Path) -> None:
    stores = [tmp_path / "a.db", tmp_path / "b.db"]
    for name, store in zip(("older1", "newer1"), reversed(stores), strict=True):
        await Session(store, program([done()]), {}, "say done", name, name).to_its_end()

    with pytest.raises(BadInputError, match="the newest are newer1, older1"):
        find_run(stores, "xyz")


def test_an_unknown_run_is_told_with_those_that_there_are(harness: Harness, runs: Path) -> None:
    shown = harness("ctl", "run", "show", "xyz")

    assert shown.exit_code == 2
    assert "no run begins with 'xyz'; the newest are broken1, aside1, over1" in shown.stderr


def test_who_looks_in_one_run_directory_is_not_sent_to_another(
    harness: Harness, runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert "are found with --run-dir" in harness("ctl", "run", "show", "xyz").stderr
    batch = tmp_path_factory.mktemp("batch")
    runs.rename(batch / "runs.db")

    for place in (("--store", str(batch / "runs.db")), ("--run-dir", str(batch))):
        shown = harness("ctl", "run", "show", "xyz", *place)

        assert shown.stderr.endswith("the newest are broken1, aside1, over1\n")


def test_an_id_that_several_share_is_told_with_them(harness: Harness, runs: Path) -> None:
    asyncio.run(Session(runs, program([done()]), {}, "x", "over2", "over2").to_its_end())

    shown = harness("ctl", "run", "show", "over")

    assert shown.exit_code == 2
    assert "2 runs begin with 'over': over1, over2" in shown.stderr
    assert harness("ctl", "run", "show", "over1").exit_code == 0


def test_events_are_those_of_the_run(harness: Harness, runs: Path) -> None:
    lines = harness("ctl", "run", "events", "over1")
    plain = harness("ctl", "run", "events", "over1", "--json")

    assert "run over1\nturn 1\n  → work_complete" in lines.stdout
    assert "done(completed): 1 turn" in lines.stdout
    kinds = [json.loads(line)["type"] for line in plain.stdout.splitlines()]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_completed"
    assert "tool_called" in kinds


def test_who_only_looks_opens_no_code_and_changes_nothing(harness: Harness, runs: Path) -> None:
    with sqlite3.connect(runs) as connection:
        # What stands in every request is plain JSON beside it.
        connection.execute("UPDATE code SET blob = x'00' WHERE length(code) = 64")
    connection.close()
    before, files = runs.read_bytes(), sorted(runs.parent.iterdir())

    for words in (["list"], ["show", "over1"], ["events", "aside1"]):
        assert harness("ctl", "run", *words).exit_code == 0

    assert runs.read_bytes() == before
    assert sorted(runs.parent.iterdir()) == files


# ---- doing ------------------------------------------------------------------------------


def test_runs_that_nobody_serves_are_cancelled(harness: Harness, runs: Path) -> None:
    cancelled = harness("ctl", "run", "cancel", "aside1", "broken1", "over1", "--json")

    assert cancelled.exit_code == 0
    told = [json.loads(line) for line in cancelled.stdout.splitlines()]
    assert [(run["run_id"], run["status"], run["reason"]) for run in told] == [
        ("aside1", "cancelled", "user"),
        ("broken1", "cancelled", "user"),
        ("over1", "done", "completed"),
    ]
    last = JournalReader(runs).load_conversation("broken1")[-1]
    assert "outcome of this call is unknown" in last.text


def test_runs_are_taken_up_and_shown_to_their_ends(harness: Harness, runs: Path) -> None:
    resumed = harness("ctl", "run", "resume", "broken1", "--runtime", "local")

    assert resumed.exit_code == 0
    assert resumed.stdout == "after all\n"
    assert "resumed" in resumed.stderr
    assert "the outcome of a call of hang is unknown" in resumed.stderr
    assert "done(completed)" in resumed.stderr


def test_several_runs_are_taken_up_together(harness: Harness, runs: Path) -> None:
    words = ("ctl", "run", "resume", "broken1", "aside1", "over1", "--runtime", "local", "--json")
    resumed = harness(*words)

    assert resumed.exit_code == 0
    results = [json.loads(line) for line in resumed.stdout.splitlines()]
    assert [result["run_id"] for result in results] == ["broken1", "aside1", "over1"]
    assert {result["status"] for result in results} == {"done"}


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["told", "json"])
def test_of_a_run_that_was_over_it_is_told(
    harness: Harness, runs: Path, flags: tuple[str, ...]
) -> None:
    before = harness("ctl", "run", "resume", "over1", *flags)
    harness("ctl", "run", "cancel", "aside1")
    cancelled = harness("ctl", "run", "resume", "aside1", *flags)

    assert (before.exit_code, cancelled.exit_code) == (0, 1)
    assert before.stderr == "run over1 was over: done(completed)\n"
    assert cancelled.stderr == "run aside1 was over: cancelled(user)\n"
    if flags:
        assert json.loads(cancelled.stdout)["status"] == "cancelled"
    else:
        assert cancelled.stdout == "", "it has no answer, not even an empty line"


def test_a_run_without_its_key_is_not_taken_up_but_can_be_shown_and_ended(
    harness: Harness, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY_OF_TESTS", "sk-1")
    agent = program(KeyedModel(_hangs_once))

    async def begin() -> None:
        async with opened_locally(home / "runs.db", FIRST_COMMAND) as runtime:
            session = Session(home / "runs.db", agent, {}, "x", "keyed1", "keyed1")
            await session.submit(runtime)
            await session.until(lambda event: isinstance(event, ToolCalled), runtime)

    asyncio.run(begin())
    monkeypatch.delenv("A_KEY_OF_TESTS")

    resumed = harness("ctl", "run", "resume", "keyed1", "--runtime", "local")

    assert resumed.exit_code == 2
    assert "needs A_KEY_OF_TESTS" in resumed.stderr
    for words in (("show", "keyed1"), ("events", "keyed1"), ("cancel", "keyed1")):
        assert harness("ctl", "run", *words).exit_code == 0
    over = harness("ctl", "run", "resume", "keyed1", "--runtime", "local")
    assert over.stderr == "run keyed1 was over: cancelled(user)\n", "it asks no model any more"


def test_a_run_whose_conversation_went_on_is_not_taken_up(harness: Harness, runs: Path) -> None:
    agent = program(ScriptedModel(_hangs_once))
    later = Session(runs, agent, {}, "what now?", "later1", "aside1")

    async def talk_on() -> None:
        # Another command, so that the runs of the first one are left as they are.
        async with opened_locally(runs, SECOND_COMMAND) as runtime:
            await later.submit(runtime)
            await later.until(lambda event: isinstance(event, RunCompleted), runtime)

    asyncio.run(talk_on())

    refused = harness("ctl", "run", "resume", "broken1", "aside1", "--runtime", "local")

    assert refused.exit_code == 2
    for said in ("'aside1'", "'later1'", "in the conversation, or start a new run"):
        assert said in refused.stderr
    assert JournalReader(runs).load_result("broken1") is None, "nothing of it was begun"


@pytest.mark.parametrize("there", [False, True], ids=["gone", "there again"])
def test_a_run_goes_on_only_where_its_workspace_is(
    home: Path, harness: Harness, there: bool
) -> None:
    folder, agent = home / "work", program(ScriptedModel(_hangs_once))
    spec = agent.spec(
        "x", HarnessConfig(), run_id="works1", workspace=WorkspaceSpec(path=str(folder))
    )

    async def begin() -> None:
        async with opened_locally(home / "runs.db", FIRST_COMMAND) as runtime:
            await runtime.submit([spec], code={agent.code: agent.blob}, secrets={})
            await until(runtime, "works1", lambda event: isinstance(event, ToolCalled))

    asyncio.run(begin())
    folder.rmdir()
    if there:
        folder.mkdir()

    resumed = harness("ctl", "run", "resume", "works1", "--runtime", "local")

    if there:
        assert (resumed.exit_code, resumed.stdout) == (0, "after all\n")
        return
    assert resumed.exit_code == 2
    assert f"run 'works1': there is no folder {str(folder)!r}" in resumed.stderr
    assert "make it again" in resumed.stderr
    (run,) = JournalReader(home / "runs.db").headings()
    assert (run.rounds, run.end, run.command) == (1, None, FIRST_COMMAND), "it was left alone"


class KeyedModel(ScriptedModel):
    key_names = ("A_KEY_OF_TESTS",)


# ---- while another process works on it --------------------------------------------------


async def test_a_run_of_another_process_is_followed_but_not_taken(
    home: Path, harness: Harness
) -> None:
    async with LoopbackServer(works) as server:
        server.hold()
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ["run", "a task", "--runtime", "local", "--workspace", str(home), *model]
        running = await started(words, HARNESS_HOME=str(home))
        await server.until_open(1)

        (run,) = by_id(await asyncio.to_thread(harness, "ctl", "run", "list", "--json")).values()
        following = await started(
            ["ctl", "run", "events", run["run_id"][:6], "--follow", "--json"],
            HARNESS_HOME=str(home),
        )
        await following.until_said("run_started")
        refused = await asyncio.to_thread(harness, "ctl", "run", "cancel", run["run_id"])
        resumed = await asyncio.to_thread(harness, "ctl", "run", "resume", run["run_id"])
        server.release()
        status, _, _ = await finished(running)
        followed, events, _ = await finished(following)

    assert run["status"] == "running"
    assert refused.exit_code == resumed.exit_code == 2
    assert f"process {running.process.pid} works on it without Ray" in refused.stderr
    assert f"the process {running.process.pid} works on it" in resumed.stderr
    assert (status, followed) == (0, 0)
    assert json.loads(events.splitlines()[-1])["type"] == "run_completed"


async def test_of_runs_in_several_journals_those_that_can_be_are_cancelled(
    harness: Harness, runs: Path, home: Path
) -> None:
    async with LoopbackServer(lambda _: done()) as server:
        server.hold()
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ["run", "a task", "--runtime", "local", *model]
        # The journal of the other runs is taken, so it gets one of its own.
        with held_by_another_process(runs):
            running = await started(words, HARNESS_HOME=str(home))
            await server.until_open(1)
        listed = by_id(await asyncio.to_thread(harness, "ctl", "run", "list", "--json"))
        (other,) = [run_id for run_id, run in listed.items() if run["status"] == "running"]
        cancelled = await asyncio.to_thread(
            harness, "ctl", "run", "cancel", other, "aside1", "--json"
        )
        server.release()
        await finished(running)

    assert cancelled.exit_code == 1
    (line,) = cancelled.stdout.splitlines()
    assert json.loads(line)["run_id"] == "aside1"
    assert json.loads(line)["status"] == "cancelled"
    assert "without Ray" in cancelled.stderr


async def test_a_run_that_the_cell_of_its_journal_does_not_serve_is_told_at_once(
    harness: Harness, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = home / "runs.db"
    await _three_runs(store)
    async with asyncio.timeout(10), opened_locally(store, SECOND_COMMAND) as elsewhere:

        async def cell_of(store: Path, address: str | None) -> Runtime:
            return elsewhere

        monkeypatch.setattr(control, "_cell_of", cell_of)
        monkeypatch.setattr(control, "ENDED_WITHIN_S", 60.0)
        headings, served = await control.pause_runs(store, ["broken1", "aside1"], None, now=False)

    assert {run_id: one.phase for run_id, one in headings.items()} == {
        "broken1": "running",
        "aside1": "parked",
    }
    assert not served


def test_a_run_that_nobody_serves_is_told_as_interrupted_beside_one_that_is_served(
    harness: Harness, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow_cell(store: Path, address: str | None) -> Slow:
        return Slow()

    monkeypatch.setattr(control, "_cell_of", slow_cell)
    monkeypatch.setattr(control, "ENDED_WITHIN_S", 0.1)
    with held_by_another_process(runs):
        at_work = harness("ctl", "run", "pause", "broken1")
        monkeypatch.setattr(Slow, "unserved", ("broken1",))
        interrupted = harness("ctl", "run", "pause", "broken1")

    told = "broken1: asked to stop after its round; it is in progress still\n"
    assert (at_work.exit_code, at_work.stdout) == (1, told)
    assert (interrupted.exit_code, interrupted.stdout) == (0, "broken1: interrupted\n")


class Slow:
    """A cell that does what it is asked to some time later."""

    unserved: tuple[str, ...] = ()

    async def stop(self, run_ids: Sequence[str], mode: str) -> tuple[str, ...]:
        return self.unserved


@pytest.mark.parametrize("named", [("aside1", "over2"), ("over2", "aside1"), ("aside1", "over1")])
def test_where_one_run_of_several_is_not_over_yet_the_status_says_so(
    harness: Harness,
    runs: Path,
    home: Path,
    named: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Session(home / "runs-2.db", program([done()]), {}, "say done", "over2", "over2")
    asyncio.run(other.to_its_end())

    async def slow_cell(store: Path, address: str | None) -> Slow:
        return Slow()

    monkeypatch.setattr(control, "_cell_of", slow_cell)
    monkeypatch.setattr(control, "ENDED_WITHIN_S", 0.1)
    cancelled = harness("ctl", "run", "cancel", *named)

    assert cancelled.exit_code == 1
    told = {line.partition(":")[0]: line for line in cancelled.stdout.splitlines()}
    assert told.keys() == set(named)
    assert told["aside1"] == "aside1: asked to end; it is not over yet"


async def test_ctrl_c_leaves_a_follower(home: Path) -> None:
    await _three_runs(home / "runs.db")
    following = await started(
        ["ctl", "run", "events", "broken1", "--follow"], HARNESS_HOME=str(home)
    )
    await following.until_said("hang")
    following.process.send_signal(signal.SIGINT)
    status, _, error = await finished(following)

    assert status == 130
    assert "nobody works on it now; harness ctl run resume broken1" in error
    assert "Traceback" not in error


@pytest.mark.ray
@pytest.mark.timeout(180)
async def test_a_run_in_flight_on_ray_is_cancelled_from_another_process(home: Path) -> None:
    async with LoopbackServer(works) as server:
        server.hold()
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ["run", "a task", "--address", "local", "--workspace", str(home), *model]
        running = await started(words, HARNESS_HOME=str(home))
        await server.until_open(1)
        (run,) = JournalReader(home / "runs.db").headings()

        words = ["ctl", "run", "cancel", run.run_id]
        cancelled = await finished(await started(words, HARNESS_HOME=str(home)))
        status, _, error = await finished(running)

    assert cancelled[:2] == (0, f"{run.run_id}: cancelled(user)\n")
    assert status == 1
    assert "cancelled(user)" in error
