"""Real processes of pools, killed while many children are at work: each result is there once."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessResult
from harness_actors.actors.processes import is_alive
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse, ToolContext
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.subagents.spec import CUSTOM_POOL
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.subagents.team import DONE, asked, told

ANSWER_S = 0.1
LOG = "effects.txt"


@tool
async def append(context: ToolContext, line: str) -> str:
    """Append a line to the log."""
    assert context.workspace is not None
    with (context.workspace / LOG).open("a") as file:
        file.write(f"{line}\n")
    await asyncio.sleep(ANSWER_S)
    return f"appended {line}"


class SlowModel:
    """Delegates so many lines at once; who it delegates to appends its line, and says so."""

    name = "slow"
    key_names: tuple[str, ...] = ()

    def __init__(self, children: int) -> None:
        self._children = children

    async def complete(self, request: ModelRequest) -> ModelResponse:
        await asyncio.sleep(ANSWER_S)
        reply = self._reply(request.messages)
        return await ScriptedModel(lambda _: reply).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)

    def _reply(self, talk: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in talk)
        if talk[0].text.startswith("top"):
            lines = [("appends", {"prompt": f"line-{n}"}) for n in range(self._children)]
            return Reply.calls(lines) if spoken == 0 else DONE
        if spoken == 0:
            return Reply.call("append", {"line": asked(talk)})
        return Reply.text(f"{asked(talk)}: {talk[-1].text[:20]}")


def pool_of(store: Path) -> list[int]:
    """The processes of the pool that serve now."""
    journal = JournalReader(store)
    marks = [mark for mark in journal.load_processes() if mark.role == CUSTOM_POOL]
    journal.close()
    return [mark.pid for mark in marks if is_alive(mark)]


async def struck(
    folder: Path, children: int, times: int
) -> tuple[HarnessResult, JournalReader, int]:
    store = folder / "runs.db"
    agent = ChatAgent(
        model=SlowModel(children),
        instructions="top",
        tools=[append],
        sub_agents=[SubAgentSpec(name="appends", description="Appends a line.")],
    )
    killed = 0
    async with AgentHarness(
        agent, runtime="ray", address="local", store=store, workspace=folder / "work"
    ) as harness:
        running = asyncio.ensure_future(harness.run("Go."))
        while killed < times and not running.done():
            await asyncio.sleep(0.3)
            for pid in pool_of(store) if store.exists() else ():
                # It has just begun to serve them again, or is about to.
                await asyncio.sleep(0.4)
                os.kill(pid, signal.SIGKILL)
                killed += 1
                break
        result = await running
    return result, JournalReader(store), killed


def check(result: HarnessResult, journal: JournalReader, children: int, folder: Path) -> None:
    assert result.status == "done"
    answers = told(journal, result.run_id)[:children]
    assert len(answers) == children
    # In the order of the calls; of some nobody knows whether they have appended.
    assert all(text.startswith(f"line-{n}: ") for n, text in enumerate(answers)), answers
    lines = Counter((folder / "work" / LOG).read_text().split())
    assert max(lines.values()) == 1, "an effect happened twice"
    appended = [n for n, text in enumerate(answers) if "appended" in text]
    assert {f"line-{n}" for n in appended} <= set(lines)
    ended = [
        told_of.event.run_id  # type: ignore[attr-defined]
        for told_of in journal.load_events(0, limit=1_000_000)
        if told_of.event.type == "child_ended"
    ]
    assert len(ended) == len(set(ended)) == children


@pytest.mark.ray
@pytest.mark.timeout(240)
async def test_a_pool_that_is_killed_again_and_again_loses_no_result(tmp_path: Path) -> None:
    result, journal, killed = await struck(tmp_path, children=40, times=3)
    assert killed >= 2
    check(result, journal, 40, tmp_path)


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.timeout(600)
async def test_two_hundred_delegations_outlive_twenty_kills(tmp_path: Path) -> None:
    result, journal, killed = await struck(tmp_path, children=200, times=20)
    assert killed >= 10
    check(result, journal, 200, tmp_path)
