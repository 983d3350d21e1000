"""Tasks whose runs begin others: what these cost is counted once, and they are no tasks."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness_actors.agents import ChatAgent
from harness_actors.batch import TaskOutcome, run_batch
from harness_actors.events import ChildrenStarted, RunEvent
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.records import RunHeading
from harness_actors.results import Usage
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.batch.fake_runtime import tasks


class Dollar(ScriptedModel):
    """A scripted model whose answers cost a dollar."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answer = await super().complete(request)
        usage = Usage(model_calls=1, input_tokens=9, output_tokens=1, cost_usd=1.0)
        return ModelResponse(text=answer.text, tool_calls=answer.tool_calls, usage=usage)


@tool(effect="read_only", volatile=True)
async def look() -> str:
    """Look, which takes a moment."""
    await asyncio.sleep(0.01)
    return "nothing yet"


def a_boss(*, rounds: int = 2) -> ChatAgent:
    """An agent that delegates to two at once, each of which makes so many model calls."""

    def script(messages: Sequence[Message]) -> Reply:
        if messages[0].text.startswith("You look"):
            if sum(message.role == "assistant" for message in messages) + 1 < rounds:
                return Reply.call("look")
            return Reply.text("nothing was there")
        if messages[-1].role == "tool":
            return Reply.call("work_complete", {"summary": "both have looked"})
        return Reply.calls([("scout", {"prompt": "left"}), ("scout", {"prompt": "right"})])

    scout = SubAgentSpec(name="scout", description="Looks.", instructions="You look.")
    return ChatAgent(model=Dollar(script), tools=[look], sub_agents=[scout])


async def run(
    folder: Path,
    count: int,
    *,
    rounds: int = 2,
    on_event: Callable[[RunEvent], None] | None = None,
    **settings: Any,
) -> list[TaskOutcome]:
    return [
        outcome
        async for outcome in run_batch(
            tasks(count),
            a_boss(rounds=rounds),
            runtime="local",
            run_dir=folder,
            on_event=on_event,
            **settings,
        )
    ]


def summary_in(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def runs_in(folder: Path) -> list[RunHeading]:
    return JournalReader(folder / "runs.db").headings()


def spent_in(folder: Path) -> float:
    return sum(one.usage.cost_usd for one in runs_in(folder))


async def test_a_line_tells_of_the_run_and_of_its_tree_and_the_summary_counts_it_once(
    tmp_path: Path,
) -> None:
    outcomes = await run(tmp_path, 2)
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    summary = summary_in(tmp_path)

    assert [outcome.ok for outcome in outcomes] == [True, True]
    for line in lines:
        assert (line["model_calls"], line["usage"]["cost_usd"]) == (2, 2.0)
        assert line["children"] == 2
        # Two scouts of two model calls and one look each.
        assert line["usage_tree"] == {
            "input_tokens": 54,
            "output_tokens": 6,
            "cached_tokens": 0,
            "cost_usd": 6.0,
            "model_calls": 6,
            "tool_calls": 4,
        }
    assert summary["tasks"] == 2
    assert (summary["usage"]["cost_usd"], summary["usage"]["model_calls"]) == (12.0, 12)
    assert (summary["unlisted"]["runs"], summary["unfinished"]["runs"]) == (0, 0)
    assert summary["unlisted"]["usage"]["cost_usd"] == 0
    assert summary["command"]["rounds"] == 12
    assert len(runs_in(tmp_path)) == 6


async def test_the_same_command_has_nothing_left_to_do(tmp_path: Path) -> None:
    await run(tmp_path, 2)

    assert await run(tmp_path, 2, budget_usd=12.5) == []
    assert len(runs_in(tmp_path)) == 6
    assert summary_in(tmp_path)["ending"] == "complete"


async def test_a_budget_counts_what_was_delegated(tmp_path: Path) -> None:
    outcomes = await run(tmp_path, 4, rounds=1000, budget_usd=12, concurrency=2)

    assert {(one.status, one.reason.kind) for one in outcomes} == {("limit", "budget")}
    assert len(outcomes) == 2, "nothing new was started"
    assert 12 <= spent_in(tmp_path) <= 12 + 4
    assert summary_in(tmp_path)["usage"]["cost_usd"] == spent_in(tmp_path)


async def test_what_an_interrupted_tree_has_cost_counts_once_for_the_next_command(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()

    def note(event: RunEvent) -> None:
        if isinstance(event.event, ChildrenStarted):
            begun.set()

    first = asyncio.create_task(run(tmp_path, 1, rounds=1000, budget_usd=30, on_event=note))
    await begun.wait()
    while spent_in(tmp_path) < 7:  # noqa: ASYNC110 - nobody tells of rounds of children
        await asyncio.sleep(0.02)
    first.cancel()
    await asyncio.wait((first,))
    left = summary_in(tmp_path)
    between = spent_in(tmp_path)

    outcomes = await run(tmp_path, 1, rounds=1000, budget_usd=30)

    assert (left["unfinished"]["runs"], left["usage"]["cost_usd"]) == (1, between)
    assert left["unfinished"]["usage"]["cost_usd"] == between
    assert between < 30
    assert [(one.attempt, one.status, one.reason.kind) for one in outcomes] == [
        (1, "limit", "budget")
    ]
    assert 30 <= spent_in(tmp_path) <= 30 + 2
