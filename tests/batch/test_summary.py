"""The summary of a run directory, with a journal that is really there."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import run_batch
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.table import final_rows
from harness_actors.errors import StoreError
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
    """A scripted model whose answers cost ten tokens and a dollar."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answer = await super().complete(request)
        usage = Usage(model_calls=1, input_tokens=9, output_tokens=1, cost_usd=1.0)
        return ModelResponse(text=answer.text, tool_calls=answer.tool_calls, usage=usage)


@tool(effect="read_only", volatile=True)
async def look() -> str:
    """Look, which takes a moment."""
    await asyncio.sleep(0.01)
    return "nothing yet"


def looks_twice(messages: Sequence[Message]) -> Reply:
    if sum(message.role == "tool" for message in messages) < 2:
        return Reply.call("look")
    return Reply.call("work_complete", {"summary": "seen"})


def looks_for_ever(_: Sequence[Message]) -> Reply:
    return Reply.call("look")


def an_agent(model: ScriptedModel) -> ChatAgent:
    return ChatAgent(model=model, tools=[look])


def summary_in(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


async def finish(folder: Path, model: ScriptedModel, **settings: Any) -> dict[str, Any]:
    agent = an_agent(model)
    async for _ in run_batch(tasks(2), agent, runtime="local", run_dir=folder, **settings):
        pass
    return summary_in(folder)


async def interrupt(folder: Path, rounds: int) -> dict[str, Any]:
    """Leave two runs in the middle of their work."""
    done = asyncio.Semaphore(0)

    def count(event: RunEvent) -> None:
        if isinstance(event.event, RoundCompleted):
            done.release()

    command = asyncio.create_task(finish(folder, Dollar(looks_for_ever), on_event=count))
    for _ in range(rounds):
        await done.acquire()
    command.cancel()
    await asyncio.wait((command,))
    return summary_in(folder)


async def test_what_unfinished_runs_used_is_in_the_sums_and_shown(tmp_path: Path) -> None:
    summary = await interrupt(tmp_path, rounds=6)

    used, unfinished = summary["usage"], summary["unfinished"]
    assert (summary["tasks"], unfinished["runs"]) == (0, 2)
    assert unfinished["usage"] == used
    assert used["model_calls"] >= 6
    assert used["input_tokens"] == 9 * used["model_calls"]
    assert used["cost_usd"] == used["model_calls"]
    rows = dict(final_rows(summary, None))
    assert rows["tokens"].startswith(f"{used['input_tokens']:,} in, {used['output_tokens']:,} out")
    assert rows["cost"] == f"${used['cost_usd']:.4f}"
    assert rows["unfinished"].startswith("2 runs: ")


async def test_runs_that_went_on_to_their_end_are_counted_once(tmp_path: Path) -> None:
    cut = await interrupt(tmp_path, rounds=2)
    # They go on with the agent that they began with, so a bound has to end them.
    bound = cut["usage"]["cost_usd"] + 4
    summary = await finish(tmp_path, Dollar(looks_twice), budget_usd=bound)

    lines = list(read_outcomes(tmp_path / "results.jsonl"))
    assert summary["tasks"] == len(lines) == 2
    assert summary["usage"]["cost_usd"] == sum(line.usage.cost_usd for line in lines) >= bound
    assert summary["unfinished"]["runs"] == summary["unlisted"]["runs"] == 0
    assert "unfinished" not in dict(final_rows(summary, None))


async def test_attempts_that_another_took_the_place_of_are_in_the_sums(tmp_path: Path) -> None:
    poor = await finish(tmp_path, Dollar(looks_for_ever), budget_usd=4)
    rich = await finish(tmp_path, Dollar(looks_twice), retry_failed=True)

    assert rich["statuses"] == {"done": 2}
    assert rich["unlisted"] == {"runs": 2, "usage": poor["usage"], "to_be_written": 0}
    assert rich["usage"]["cost_usd"] == poor["usage"]["cost_usd"] + 2 * 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_tokens": int(1e308)},
        {"output_tokens": 10**400},
        {"input_tokens": 1e308, "output_tokens": 1e308},
        {"cached_tokens": -5},
        {"cost_usd": float("nan")},
        {"cost_usd": 1e308},
    ],
)
async def test_the_summary_is_written_whatever_one_result_holds(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    def one_is_wrong(spec: RunSpec) -> HarnessResult:
        result = ended(spec, cost_usd=1.0)
        if spec.metadata["task_id"] != "t2":
            return result
        return replace(result, usage=replace(result.usage, **wrong))

    journal = Journal()
    for _ in ("and again", "from what was written"):
        batch = a_batch(tasks(3), tmp_path, FakeRuntime(journal, one_is_wrong))
        await outcomes_of(batch)
        summary = summary_in(tmp_path)
        assert summary["statuses"] == {"done": 3}
        used = summary["usage"]
        assert used["input_tokens"] == (20 if "input_tokens" in wrong else 30)
        assert used["cost_usd"] == (2.0 if "cost_usd" in wrong else 3.0)
        assert dict(final_rows(summary, None))["ok"] == "3 of 3 tasks"


async def test_the_summary_counts_the_tasks_that_there_are_now(tmp_path: Path) -> None:
    def some_fail(spec: RunSpec) -> HarnessResult:
        fails = spec.metadata["task_id"] in ("t1", "t2")
        return ended(spec, "failed", "model_error", cost_usd=1.0) if fails else ended(spec)

    journal = Journal()
    before = a_batch(tasks(5), tmp_path, FakeRuntime(journal, some_fail))
    await outcomes_of(before)
    changed = {"id": "t2", "task": "another"}
    now = a_batch([changed, *tasks(5)[2:]], tmp_path, FakeRuntime(journal), budget_usd=2)
    await outcomes_of(now)

    summary = summary_in(tmp_path)
    assert (before.ok, now.ok) == (False, False)
    assert (summary["tasks"], summary["without_result"]) == (3, 1)
    assert summary["statuses"] == {"done": 3}
    assert summary["causes"] == []
    removed = summary["removed"]
    assert (removed["tasks"], removed["ids"]) == (2, ["t1", "t2"])
    assert removed["statuses"] == {"failed": 2}
    assert summary["usage"]["cost_usd"] == removed["usage"]["cost_usd"] == 2.0
    rows = dict(final_rows(summary, None))
    assert rows["ok"] == "3 of 4 tasks"
    assert rows["removed"].startswith("2 results of tasks that this command does not have")
    assert rows["removed"].endswith(": t1, t2")


async def test_with_the_failed_tasks_removed_the_command_is_all_ok(tmp_path: Path) -> None:
    journal = Journal()

    def one_fails(spec: RunSpec) -> HarnessResult:
        fails = spec.metadata["task_id"] == "t1"
        return ended(spec, "failed", "model_error") if fails else ended(spec)

    first = a_batch(tasks(3), tmp_path, FakeRuntime(journal, one_fails), epochs=2)
    await outcomes_of(first)
    now = a_batch(tasks(3)[1:], tmp_path, FakeRuntime(journal))
    await outcomes_of(now)

    assert (first.ok, now.ok) == (False, True)
    assert now.summary["verdicts"] == {"ok": 2}
    assert now.summary["removed"]["tasks"] == 4
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 6


async def test_an_unfinished_run_of_a_removed_task_is_told_apart(tmp_path: Path) -> None:
    await interrupt(tmp_path, rounds=4)

    agent = an_agent(Dollar(looks_twice))
    async for _ in run_batch(["other"], agent, runtime="local", run_dir=tmp_path):
        pass

    summary = summary_in(tmp_path)
    assert (summary["unfinished"]["runs"], summary["unfinished"]["of_removed_tasks"]) == (2, 2)
    assert dict(final_rows(summary, None))["unfinished"].startswith(
        "2 runs, 2 of them of removed tasks: "
    )


async def test_unfinished_runs_of_tasks_that_were_not_come_by_are_of_no_removed_task(
    tmp_path: Path,
) -> None:
    journal = Journal()
    first = FakeRuntime(journal, never_ends)
    begun = a_batch(tasks(3), tmp_path, first)
    command = asyncio.create_task(outcomes_of(begun))
    await first.until_in_flight(3)
    begun.park()
    await command

    def once() -> Iterator[Mapping[str, str]]:
        yield {"id": "bad"}
        yield from tasks(3)

    cut = a_batch(once(), tmp_path, FakeRuntime(journal), concurrency=1, fail_on_error=1)
    await outcomes_of(cut)
    unfinished = cut.summary["unfinished"]
    assert (unfinished["runs"], unfinished["of_removed_tasks"]) == (3, 0)


async def test_results_of_a_source_that_was_not_read_to_its_end_are_all_counted(
    tmp_path: Path,
) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(4), tmp_path, FakeRuntime(journal)))

    def once() -> Iterator[Mapping[str, str]]:
        yield from tasks(2)
        yield from ({"id": f"u{number}", "task": "x"} for number in range(9))

    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "model_error")

    cut = a_batch(once(), tmp_path, FakeRuntime(journal, fails), concurrency=1, fail_on_error=1)
    await outcomes_of(cut)
    assert (cut.summary["tasks"], cut.summary["removed"]) == (5, None)

    read = a_batch(once(), tmp_path, FakeRuntime(journal))
    await outcomes_of(read)
    assert (read.summary["tasks"], read.summary["removed"]["ids"]) == (11, ["t3", "t4"])


async def test_a_journal_that_cannot_be_read_is_told_and_the_rest_summed_up(tmp_path: Path) -> None:
    whole = await finish(tmp_path, Dollar(looks_twice))
    journal = tmp_path / "runs.db"
    # Its first page still says that it is ours.
    journal.write_bytes(journal.read_bytes()[:100] + b"damaged" * 1000)

    with_none = asyncio.create_task(finish(tmp_path, Dollar(looks_twice)))
    await asyncio.wait((with_none,))

    summary = summary_in(tmp_path)
    assert with_none.exception() is not None
    assert summary["ending"] == "error"
    assert summary["usage"] == whole["usage"]
    assert summary["unfinished"] is summary["unlisted"] is None


async def test_of_a_directory_that_was_moved_it_is_told_that_its_runs_are_not_counted(
    tmp_path: Path,
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(2), tmp_path / "run", runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(2)
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    batch.park()
    await asyncio.wait((command,))

    assert isinstance(command.exception(), StoreError)
    assert "not counted" in dict(final_rows(batch.summary, None))["unfinished"]
