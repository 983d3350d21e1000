"""`harness ctl run`, of trees whose user is asked by a run below the top."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_actors.actors.runtime import StopMode
from harness_actors.agents import ChatAgent, Program
from harness_actors.cli.app import app
from harness_actors.events import InputAwaited
from harness_actors.messages import Message
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, over_messages
from harness_actors.tools import tool
from tests.actors.followers import until
from tests.cli.approving_agents import FILE, RULES, refund
from tests.cli.commands import finished, started
from tests.cli.terminals import at_a_terminal
from tests.replay.recorded_runs import FIRST_COMMAND, Session, opened_locally

TREE = "a1b2c3"
CLERK = SubAgentSpec(name="clerk", description="Refunds.", instructions="You refund.")


def says(messages: Sequence[Message]) -> Reply:
    told = [message.text for message in messages if message.role == "tool"]
    if messages[0].text.startswith("You refund"):
        return Reply.text(told[-1]) if told else Reply.call("refund", {"order": 7, "amount": 5})
    if not told:
        return Reply.calls([("clerk", {"prompt": "one"}), ("clerk", {"prompt": "two"})])
    return Reply.call("work_complete", {"summary": " | ".join(told)})


async def waiting_tree(store: Path) -> None:
    agent = ChatAgent(
        model=ScriptedModel(says),
        tools=[refund],
        instructions="You lead.",
        sub_agents=[CLERK],
        approvals=Approvals(rules=[ApprovalRule(decide="ask", tools=["refund"])]),
    )
    session = Session(store, Program.of(agent), {}, "settle it", TREE, TREE)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)


@tool(effect="read_only", volatile=True)
async def rest() -> str:
    """Return when somebody says so."""
    while not Path(os.environ["HARNESS_HOME"], "go").exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.01)
    return "rested"


def rests_beside(messages: Sequence[Message]) -> Reply:
    if messages[0].text.startswith("You rest"):
        told = [message.text for message in messages if message.role == "tool"]
        return Reply.text(told[-1]) if told else Reply.call("rest", {})
    if messages[0].text.startswith("You lead") and len(messages) < 3:
        return Reply.calls([("clerk", {"prompt": "one"}), ("rester", {"prompt": "two"})])
    return says(messages)


async def tree_at_work(store: Path, stop: StopMode | None) -> None:
    """A tree of which one asks while another one works; put aside, or left as by a kill."""
    rester = SubAgentSpec(name="rester", description="Rests.", instructions="You rest.")
    agent = ChatAgent(
        model=ScriptedModel(rests_beside),
        tools=[refund, rest],
        instructions="You lead.",
        sub_agents=[CLERK, rester],
        approvals=Approvals(rules=[ApprovalRule(decide="ask", tools=["refund"])]),
    )
    session = Session(store, Program.of(agent), {}, "settle it", TREE, TREE)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until(runtime, f"{TREE}.1", lambda event: isinstance(event, InputAwaited))
        if stop is not None:
            await runtime.stop([TREE], stop)
            await session.until(lambda event: isinstance(event, InputAwaited), runtime)


@pytest.mark.parametrize("stop", ["park_now", None], ids=["parked", "interrupted"])
def test_what_is_asked_while_others_work_is_answered_when_all_are_put_aside(
    stop: StopMode | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    asyncio.run(tree_at_work(tmp_path / "runs.db", stop))

    (run,) = json.loads(harness("ctl", "run", "list", "--status", "waiting", "--json"))
    assert run["status"] == ("interrupted" if stop is None else "waiting")
    assert [(one["id"], one["answer"]) for one in run["questions"]] == [("1.q1", None)]
    assert "1.q1 (clerk asks): May refund be called?" in harness("ctl", "run", "show", TREE)

    told = harness("ctl", "run", "approve", TREE)
    assert f"{TREE}: 1.q1 is approved" in told
    assert f"all is answered; go on by harness ctl run resume {TREE}" in told
    (run,) = json.loads(harness("ctl", "run", "list", "--json"))
    assert [one["answer"] is None for one in run["questions"]] == [False]

    (tmp_path / "go").touch()
    told = harness("ctl", "run", "resume", TREE, "--runtime", "local", "--json")
    assert json.loads(told.splitlines()[-1])["status"] == "done"
    assert "5 for 7" in json.loads(told.splitlines()[-1])["output_text"]


def test_a_tree_that_was_cut_goes_on_though_one_of_it_still_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    asyncio.run(tree_at_work(tmp_path / "runs.db", None))
    (tmp_path / "go").touch()
    told = harness("ctl", "run", "resume", TREE, "--runtime", "local", fails=True)
    assert f"run {TREE} waits for 1 call to approve" in told
    assert f"harness ctl run resume {TREE} --runtime local" in told
    ends = {one.run_id: one.end for one in JournalReader(tmp_path / "runs.db").headings()}
    assert [None if end is None else end.status for end in ends.values()] == [None, None, "done"]


def test_who_was_answered_is_listed_so(store: Path) -> None:
    harness("ctl", "run", "approve", TREE, "1.q1")
    of_tree = json.loads(harness("ctl", "run", "list", "--tree", "--json"))
    answers = {one["run_id"]: [q["answer"] for q in one.get("questions", ())] for one in of_tree}
    assert answers[f"{TREE}.1"] == answers[TREE][:1] != [None]
    assert answers[f"{TREE}.2"] == [None]
    table = harness("ctl", "run", "list", "--tree")
    assert [line.split()[1] for line in table.splitlines()[1:]] == [
        "waiting", "waiting(answered)", "waiting"
    ]  # fmt: skip
    # By itself, too, without the run at the top.
    (alone,) = json.loads(harness("ctl", "run", "show", f"{TREE}.1", "--json"))["questions"]
    assert alone["answer"] == answers[TREE][0]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal with a tree that waits for two approvals."""
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    path = tmp_path / "runs.db"
    asyncio.run(waiting_tree(path))
    return path


def harness(*words: str, fails: bool = False) -> str:
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert (result.exit_code != 0) == fails, result.output
    return result.output


def test_the_tree_waits_and_shows_who_asks(store: Path) -> None:
    (run,) = json.loads(harness("ctl", "run", "list", "--status", "waiting", "--json"))
    assert run["run_id"] == TREE
    assert [(one["id"], one["path"]) for one in run["questions"]] == [
        ("1.q1", "clerk"),
        ("2.q1", "clerk"),
    ]
    shown = harness("ctl", "run", "show", TREE)
    assert "1.q1 (clerk asks): May refund be called?" in shown
    asked = json.loads(harness("ctl", "run", "show", TREE, "--json"))["questions"]
    assert [one["answer"] for one in asked] == [None, None]


def test_a_journal_in_which_each_is_at_the_top_of_the_other_is_read_to_its_end(
    store: Path,
) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        first, second = (run for (run,) in connection.execute("SELECT run FROM children"))
        turned = "UPDATE children SET root = ? WHERE run = ?"
        connection.executemany(turned, [(second, first), (first, second)])
    (one,) = JournalReader(store).headings(f"{TREE}.1")
    assert (one.run_id, one.root) == (f"{TREE}.1", f"{TREE}.2")
    assert [asked["answer"] for asked in one.questions] == [None]


def test_calls_below_are_decided_about_one_by_one(store: Path) -> None:
    refused = harness("ctl", "run", "approve", TREE, fails=True)
    assert "2 of its calls wait for approval: 1.q1" in refused

    told = harness("ctl", "run", "approve", TREE, "1.q1")
    assert f"{TREE}: 1.q1 is approved" in told
    assert "2.q1 (clerk asks)" in told
    told = harness("ctl", "run", "deny", TREE, "2.q1", "--note", "one is enough")
    assert "all is answered" in told

    again = harness("ctl", "run", "deny", TREE, "1.q1", fails=True)
    assert "was answered before" in again


@pytest.mark.parametrize("call", ["q1", "2.q1", ""])
def test_a_run_below_may_be_named(call: str, store: Path) -> None:
    told = harness("ctl", "run", "approve", f"{TREE}.2", *([call] if call else []))
    assert f"{TREE}: 2.q1 is approved" in told
    assert "still open:" in told
    assert "1.q1 (clerk asks)" in told

    (run,) = json.loads(harness("ctl", "run", "list", "--status", "waiting", "--json"))
    assert [one["answer"] is None for one in run["questions"]] == [True, False]
    assert "has no question" in harness("ctl", "run", "answer", f"{TREE}.2", "q9", "x", fails=True)


def test_many_are_answered_by_a_file(store: Path, tmp_path: Path) -> None:
    lines = [
        {"run": TREE, "question": "1.q1", "answer": "yes"},
        {"run": f"{TREE}.2", "question": "q1", "answer": "no"},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    harness("ctl", "run", "answer", "--file", str(path))
    (run,) = json.loads(harness("ctl", "run", "list", "--status", "waiting", "--json"))
    assert [one["answer"] is None for one in run["questions"]] == [False, False]


def test_one_below_is_cancelled_and_the_tree_goes_on_with_the_other(store: Path) -> None:
    harness("ctl", "run", "cancel", f"{TREE}.1")
    (run,) = json.loads(harness("ctl", "run", "list", "--json"))
    assert [one["id"] for one in run["questions"]] == ["2.q1"]
    ends = {one.run_id: one.end for one in JournalReader(store).headings()}
    assert [None if end is None else end.status for end in ends.values()] == [
        None,
        "cancelled",
        None,
    ]


def test_all_of_it_is_cancelled(store: Path) -> None:
    harness("ctl", "run", "cancel", TREE)
    ends = [one.end for one in JournalReader(store).headings()]
    assert [None if end is None else end.status for end in ends] == ["cancelled"] * 3


def delegating_agent(folder: Path, base_url: str) -> str:
    """The file of an agent whose clerks need approval."""
    (folder / "billing.py").write_text(FILE)
    path = folder / "leading.yaml"
    path.write_text(
        f"model: {{id: scripted, base_url: '{base_url}'}}\n"
        f"environment: {{tools: ['billing:refund', 'billing:send']}}\n"
        f"persona:\n  instructions: You lead.\n  approvals: {RULES}\n  sub_agents:\n"
        "  - {name: clerk, description: Refunds., instructions: You refund.}\n"
    )
    return str(path)


async def test_a_terminal_is_asked_by_those_below_while_others_go_on(tmp_path: Path) -> None:
    async with LoopbackServer(over_messages(says)) as server:
        agent = delegating_agent(tmp_path, server.base_url)
        words = ["run", "settle it", "--runtime", "local", "--agent", agent]
        async with at_a_terminal(tmp_path, words) as terminal:
            # Which of the two asks first is nobody's choice.
            answers = {"1.q1": "y\n", "2.q1": "n not twice\n"}
            while answers:
                shown = await terminal.until_shown("y/n/e/a/t/s> ")
                (asked,) = [one for one in answers if f"{one} (clerk asks): May refund be" in shown]
                terminal.type(answers.pop(asked))
            await terminal.until_shown("done(completed)")
            assert "5 for 7 | " in await terminal.until_shown("not twice")
            assert await terminal.left() == 0


async def test_where_there_is_no_terminal_it_is_said_how_to_answer(tmp_path: Path) -> None:
    async with LoopbackServer(over_messages(says)) as server:
        agent = delegating_agent(tmp_path, server.base_url)
        words = ["run", "settle it", "--runtime", "local", "--agent", agent]
        command = await started(words, HARNESS_HOME=str(tmp_path))
        status, _, err = await finished(command)
    assert status == 1
    assert "1.q1 (clerk asks): May refund be called?" in err
    (run_id,) = {line.split()[1] for line in err.splitlines() if line.startswith("run ")}
    assert f"harness ctl run approve {run_id} 1.q1" in err


async def test_a_batch_goes_on_with_trees_that_were_answered(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "t1", "task": "settle it"}\n')
    async with LoopbackServer(over_messages(says)) as server:
        agent = delegating_agent(tmp_path, server.base_url)
        folder = str(tmp_path / "run")
        batch = ["batch", str(tmp_path / "tasks.jsonl"), "--run-dir", folder]
        batch += ["--runtime", "local", "--agent", agent, "--json"]
        home = {"HARNESS_HOME": str(tmp_path / "home")}

        status, out, _ = await finished(await started(batch, **home))
        assert status == 1
        told = [json.loads(line) for line in out.splitlines() if '"awaiting_input"' in line]
        run_id = told[0]["run_id"]
        assert not (tmp_path / "run" / "results.jsonl").exists()
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert [one["path"] for one in summary["waiting"]["runs"][0]["questions"]] == ["clerk"] * 2

        # Nothing of it goes on before all is answered.
        status, _, _ = await finished(await started(batch, **home))
        assert status == 1
        decide = ["ctl", "run", "approve", run_id, "--all", "--run-dir", folder]
        status, out, err = await finished(await started(decide, **home))
        assert status == 0, err
        status, _, err = await finished(await started(batch, **home))
        assert status == 0, err
    (line,) = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["status"] == "done"
    assert json.loads(line)["usage_tree"]["model_calls"] == 6
