"""The money of a batch: held by whoever serves its runs, across commands and deaths."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import TaskOutcome, run_batch
from harness_actors.events import RoundCompleted, RunEvent
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult, Usage
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    a_batch,
    ended,
    never_ends,
    outcomes_of,
    tasks,
)


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
    # One run alone cannot be through before the budget is spent.
    poor = await run(tmp_path, 6, rounds=7, budget_usd=6)
    same = await run(tmp_path, 6, rounds=7, budget_usd=6)
    rich = await run(tmp_path, 6, rounds=7, budget_usd=100)

    assert cost_of(poor) <= 6 + 3
    assert same == []
    assert endings(poor) == {("limit", "budget")}
    assert {outcome.id: outcome.attempt for outcome in rich} == {
        f"t{number}": 1 + any(outcome.id == f"t{number}" for outcome in poor)
        for number in range(1, 7)
    }
    assert endings(rich) == {("done", "completed")}


async def test_a_batch_of_which_every_task_was_cut_goes_on_with_a_larger_budget(
    tmp_path: Path,
) -> None:
    journal = Journal()

    def cut(spec: RunSpec) -> HarnessResult:
        return ended(spec, "limit", "budget", cost_usd=1.0)

    poor = a_batch(tasks(3), tmp_path, FakeRuntime(journal, cut), budget_usd=3)
    assert len(await outcomes_of(poor)) == 3
    assert (poor.ending, poor.ok, poor.tally.left) == ("budget", False, 0)

    runtime = FakeRuntime(journal)
    same = a_batch(tasks(3), tmp_path, runtime, budget_usd=3)
    assert await outcomes_of(same) == {}
    assert (runtime.opened, same.ending, same.ok) == (False, "budget", False)

    rich = a_batch(tasks(3), tmp_path, FakeRuntime(journal), budget_usd=4)
    assert {one.attempt for one in (await outcomes_of(rich)).values()} == {2}
    assert (rich.ending, rich.ok) == ("complete", True)


async def test_a_batch_whose_last_task_spent_the_budget_is_complete_and_stays_so(
    tmp_path: Path,
) -> None:
    journal = Journal()

    def costs(spec: RunSpec) -> HarnessResult:
        return ended(spec, cost_usd=1.0)

    for begun in (3, 0):
        batch = a_batch(tasks(3), tmp_path, FakeRuntime(journal, costs), budget_usd=3)
        assert len(await outcomes_of(batch)) == begun
        assert (batch.ending, batch.ok, batch.tally.out_of_budget) == ("complete", True, 0)


@pytest.mark.parametrize("budget_usd", [4.0, None])
async def test_what_was_cut_in_a_cell_without_its_command_goes_on_with_a_larger_budget(
    tmp_path: Path, budget_usd: float | None
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    command = asyncio.create_task(outcomes_of(a_batch(tasks(2), tmp_path, runtime, budget_usd=2)))
    await runtime.until_in_flight(2)
    command.cancel()
    await asyncio.wait((command,))
    for run_id in sorted(runtime.in_flight):
        spec = runtime.journal.specs[run_id]
        runtime.end(run_id, ended(spec, "limit", "budget", cost_usd=1.0))

    rich = a_batch(tasks(2), tmp_path, FakeRuntime(runtime.journal), budget_usd=budget_usd)

    assert {one.attempt for one in (await outcomes_of(rich)).values()} == {2}
    assert rich.ok


async def test_a_bound_of_a_tasks_own_is_final_unless_it_is_to_be_tried_again(
    tmp_path: Path,
) -> None:
    journal = Journal()

    def bound(spec: RunSpec) -> HarnessResult:
        return ended(spec, "limit", "max_turns", cost_usd=1.0)

    await outcomes_of(a_batch(tasks(2), tmp_path, FakeRuntime(journal, bound), budget_usd=2))

    rich = a_batch(tasks(2), tmp_path, FakeRuntime(journal), budget_usd=100)
    assert await outcomes_of(rich) == {}
    assert (rich.ending, rich.ok) == ("complete", False)
    again = a_batch(tasks(2), tmp_path, FakeRuntime(journal), budget_usd=100, retry_failed=True)
    assert len(await outcomes_of(again)) == 2
    assert again.ok


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
