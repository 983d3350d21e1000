"""Runs of one tree that change one file at once: no change is lost."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, Limits
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.stores import JournalReader
from harness_actors.stores.key_files import key_files_of
from harness_actors.subagents import SubAgentSpec, run_task
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.subagents.team import DONE, asked, results, told

FILE = "list.txt"
ADDS = 3
"""How often each adds its line."""


@tool(resource_keys=["file:{path}"])
async def add(context: ToolContext, path: str, line: str, takes_s: float = 0.03) -> str:
    """Read a file, think, and write it with a line more."""
    assert context.workspace is not None
    file = context.workspace / path
    before = file.read_text() if file.exists() else ""
    await asyncio.sleep(takes_s)
    file.write_text(f"{before}{line}\n")
    return f"added {line}"


@tool(resource_keys=["file:{path}"], timeout_s=0.2)
async def dawdle(path: str) -> str:
    """Take as long as it may."""
    await asyncio.Event().wait()
    return path


def adds(talk: Sequence[Message], **given: Any) -> Reply:
    """Adds its line again and again, and says so."""
    task = asked(talk)
    if len(done := results(talk)) < ADDS:
        return Reply.call("add", {"path": FILE, "line": f"{task}-{len(done)}", **given})
    return Reply.text(f"{task} is done")


def says(*replies: Reply) -> Any:
    """What the one at the top says; the others add their lines."""

    def reply(talk: Sequence[Message]) -> Reply:
        if not talk[0].text.startswith("top"):
            return adds(talk)
        spoken = sum(message.role == "assistant" for message in talk)
        return replies[min(spoken, len(replies) - 1)]

    return reply


def an_agent(script: Any, *tools: Any, background: bool = False) -> ChatAgent:
    helper = SubAgentSpec(name="helper", description="Helps.", background=background)
    return ChatAgent(
        model=ScriptedModel(script),
        instructions="top",
        tools=[add, *tools],
        sub_agents=[run_task(), helper],
    )


async def ran(
    agent: ChatAgent, folder: Path, **settings: Any
) -> tuple[Any, JournalReader, list[str]]:
    """A run, its journal, and the lines that are in the file then."""
    store, work = folder / "runs.db", folder / "work"
    given: dict[str, Any] = {"runtime": "local", **settings}
    async with AgentHarness(agent, store=store, workspace=work, **given) as harness:
        result = await harness.run("Go.")
    lines = (work / FILE).read_text().split() if (work / FILE).exists() else []
    return result, JournalReader(store), lines


def all_of(*who: str) -> list[str]:
    return sorted(f"{name}-{n}" for name in who for n in range(ADDS))


TWO = Reply.calls([("helper", {"prompt": "left"}), ("helper", {"prompt": "right"})])
TWO_KINDS = Reply.calls([("helper", {"prompt": "left"}), ("run_task", {"prompt": "right"})])


async def test_two_children_that_change_one_file_at_once_lose_no_change(tmp_path: Path) -> None:
    result, _, lines = await ran(an_agent(says(TWO, DONE)), tmp_path)
    assert result.status == "done"
    assert sorted(lines) == all_of("left", "right")
    assert list(key_files_of(tmp_path / "runs.db").iterdir()) == []


async def test_children_of_two_kinds_have_processes_of_their_own_and_lose_none(
    tmp_path: Path,
) -> None:
    _, _, lines = await ran(an_agent(says(TWO_KINDS, DONE)), tmp_path)
    assert sorted(lines) == all_of("left", "right")


async def test_without_the_locks_changes_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the tests here try what they say."""
    monkeypatch.setattr("harness_actors.turn.execution.Execution._held_keys", lambda *_: None)
    _, _, lines = await ran(an_agent(says(TWO, DONE)), tmp_path)
    assert len(lines) < len(all_of("left", "right"))


async def test_a_run_and_those_beside_it_lose_no_change(tmp_path: Path) -> None:
    mine = [Reply.call("add", {"path": FILE, "line": f"top-{n}"}) for n in range(ADDS)]
    script = says(TWO, *mine, Reply.call("agent_wait", {"until": "all"}), DONE)
    result, _, lines = await ran(an_agent(script, background=True), tmp_path)
    assert result.status == "done"
    assert sorted(lines) == all_of("left", "right", "top")


async def test_a_run_without_children_takes_no_locks(tmp_path: Path) -> None:
    script = says(Reply.call("add", {"path": FILE, "line": "alone"}), DONE)
    _, _, lines = await ran(an_agent(script), tmp_path)
    assert lines == ["alone"]
    assert not key_files_of(tmp_path / "runs.db").exists()


async def test_the_time_of_a_call_begins_when_its_keys_are_free(tmp_path: Path) -> None:
    def script(talk: Sequence[Message]) -> Reply:
        if talk[0].text.startswith("top"):
            return says(TWO, DONE)(talk)  # type: ignore[no-any-return]
        if results(talk):
            return Reply.text(results(talk)[-1])
        if asked(talk) == "left":
            return Reply.call("add", {"path": FILE, "line": "left", "takes_s": 0.5})
        return Reply.call("dawdle", {"path": FILE})

    result, journal, lines = await ran(an_agent(script, dawdle), tmp_path)
    assert lines == ["left"]
    assert told(journal, result.run_id)[:2] == [
        "added left",
        "'dawdle' was stopped: it ran past its limit of 0.2 s.",
    ]


async def test_a_run_whose_time_is_over_while_it_waits_ends_by_it(tmp_path: Path) -> None:
    def script(talk: Sequence[Message]) -> Reply:
        if talk[0].text.startswith("top"):
            return says(TWO_KINDS, DONE)(talk)  # type: ignore[no-any-return]
        who, spoken = asked(talk), len(results(talk))
        if who == "right":
            given = {"path": FILE, "line": who, "takes_s": 1.5}
            return Reply.text("done") if spoken else Reply.call("add", given)
        return Reply.call("add", {"path": FILE if spoken else "other", "line": who, "takes_s": 0.1})

    agent = an_agent(script)
    limited = replace(agent.sub_agents[1], limits=Limits(time_s=0.6))
    agent = replace(agent, sub_agents=[run_task(), limited])
    result, journal, lines = await ran(agent, tmp_path)
    assert lines == ["right"]
    assert told(journal, f"{result.run_id}.1") == [
        "added left",
        "The run's time was up before this call began.",
    ]
    assert " ended limit(time)" in told(journal, result.run_id)[0]


async def test_locks_that_cannot_be_made_are_the_result_of_the_call(tmp_path: Path) -> None:
    key_files_of(tmp_path / "runs.db").touch()
    result, journal, lines = await ran(an_agent(says(TWO, DONE)), tmp_path)
    assert result.status == "done"
    assert lines == []
    text = told(journal, f"{result.run_id}.1")[0]
    assert text.startswith("The call was not made: its resource keys cannot be locked: ")
    assert "'runs.db.locks' beside the journal. Make it a folder that this user may write" in text


@pytest.mark.ray
@pytest.mark.timeout(120)
async def test_children_in_processes_of_their_own_lose_no_change(tmp_path: Path) -> None:
    mine = [Reply.call("add", {"path": FILE, "line": f"top-{n}"}) for n in range(ADDS)]
    script = says(TWO_KINDS, *mine, Reply.call("agent_wait", {"until": "all"}), DONE)
    result, _, lines = await ran(
        an_agent(script, background=True), tmp_path, runtime="ray", address="local"
    )
    assert result.status == "done"
    assert sorted(lines) == all_of("left", "right", "top")
    assert list(key_files_of(tmp_path / "runs.db").iterdir()) == []
