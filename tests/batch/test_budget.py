"""The money of a batch: held by whoever serves its runs, across commands and deaths."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from harness_actors.agents import ChatAgent
from harness_actors.batch import TaskOutcome, run_batch
from harness_actors.events import RoundCompleted, RunEvent
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.batch.fake_runtime import FakeRuntime, Journal, a_batch, outcomes_of, tasks


class Dollar(ScriptedModel):
    """A scripted model whose answers cost a dollar."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answer = await super().complete(request)
        usage = Usage(model_calls=1, input_tokens=9, output_tokens=1, cost_usd=1.0)
        return ModelResponse(text=answer.text, tool_calls=answer.tool_calls, usage=usage)


@tool(effect="read_only")
async def look() -> str:
    """Look, which takes a moment."""
    await asyncio.sleep(0.01)
    return "nothing yet"


def a_worker(rounds: int) -> ChatAgent:
    def script(messages: Sequence[Message]) -> Reply:
        if sum(message.role == "assistant" for message in messages) + 1 < rounds:
            return Reply.call("look")
        return Reply.call("work_complete", {"summary": "seen"})

    return ChatAgent(model=Dollar(script), tools=[look])


async def run(
    folder: Path,
    count: int,
    *,
    rounds: int,
    budget_usd: float,
    on_event: Callable[[RunEvent], None] | None = None,
) -> list[TaskOutcome]:
    agent = a_worker(rounds)
    return [
        outcome
        async for outcome in run_batch(
            tasks(count),
            agent,
            runtime="local",
            concurrency=3,
            run_dir=folder,
            budget_usd=budget_usd,
            on_event=on_event,
        )
    ]


def endings(outcomes: Sequence[TaskOutcome]) -> set[tuple[str, str]]:
    return {(outcome.status, outcome.reason.kind) for outcome in outcomes}


def cost_of(outcomes: Sequence[TaskOutcome]) -> float:
    return sum(outcome.usage.cost_usd for outcome in outcomes)


async def test_runs_in_flight_end_with_the_budget_and_their_rows_say_so(tmp_path: Path) -> None:
    outcomes = await run(tmp_path, 9, rounds=1000, budget_usd=12)

    assert endings(outcomes) == {("limit", "budget")}
    assert len(outcomes) == 3, "nothing new was started"
    assert 12 <= cost_of(outcomes) <= 12 + 3
    assert all("12 USD" in outcome.reason.message for outcome in outcomes)
    assert not any(outcome.ok for outcome in outcomes)


async def test_a_larger_budget_takes_up_what_was_not_started(tmp_path: Path) -> None:
    poor = await run(tmp_path, 6, rounds=4, budget_usd=6)
    same = await run(tmp_path, 6, rounds=4, budget_usd=6)
    rich = await run(tmp_path, 6, rounds=4, budget_usd=100)

    assert cost_of(poor) <= 6 + 3
    assert same == []
    assert {outcome.id for outcome in poor}.isdisjoint(outcome.id for outcome in rich)
    assert len(poor) + len(rich) == 6
    assert endings(rich) == {("done", "completed")}


async def test_what_an_interrupted_command_spent_counts_for_the_next(tmp_path: Path) -> None:
    rounds = asyncio.Semaphore(0)

    def count(event: RunEvent) -> None:
        if isinstance(event.event, RoundCompleted):
            rounds.release()

    first = asyncio.create_task(run(tmp_path, 3, rounds=1000, budget_usd=40, on_event=count))
    for _ in range(6):
        await rounds.acquire()
    first.cancel()
    await asyncio.wait((first,))

    outcomes = await run(tmp_path, 3, rounds=1000, budget_usd=40)

    assert endings(outcomes) == {("limit", "budget")}
    # And what of each run was lost, uncommitted, when the first command ended.
    assert 40 <= cost_of(outcomes) <= 40 + 3


async def test_the_runtime_is_told_what_all_runs_may_cost(tmp_path: Path) -> None:
    runtime = FakeRuntime(Journal())
    await outcomes_of(a_batch(tasks(2), tmp_path, runtime, budget_usd=7))
    assert runtime.allowed_usd == 7

    free = FakeRuntime(Journal())
    await outcomes_of(a_batch(tasks(2), tmp_path / "other", free))
    assert free.allowed_usd is None
