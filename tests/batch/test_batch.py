import asyncio
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors.runtime import StopMode
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.settings import BatchSettings
from harness_actors.errors import BadInputError, ConfigError, StoreError, StoreInUseError
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult, Status, Usage
from harness_actors.testing import ScriptedModel, an_agent
from harness_actors.testing.agents import completes_at_once
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    Script,
    a_batch,
    always_done,
    ended,
    never_ends,
    outcomes_of,
    tasks,
    tasks_of,
)


def failing(*names: str, kind: str = "model_error") -> Script:
    """Runs of these tasks fail, the others end well."""

    def script(spec: RunSpec) -> HarnessResult:
        fails = spec.metadata["task_id"] in names
        return ended(spec, "failed", kind) if fails else ended(spec)

    return script


class Keyed(ScriptedModel):
    """A model whose key was given in code."""

    key_names = ("KEY",)
    secrets: Mapping[str, str] = {"KEY": "key of the batch"}


def in_file(folder: Path) -> dict[str, str]:
    return {one.id: one.status for one in read_outcomes(folder / "results.jsonl")}


async def test_every_task_has_one_outcome_and_one_line(tmp_path: Path) -> None:
    runtime = FakeRuntime(Journal())
    batch = a_batch(tasks(30), tmp_path, runtime, concurrency=4)

    outcomes = await outcomes_of(batch)

    assert set(outcomes) == {f"t{number}" for number in range(1, 31)}
    assert list(in_file(tmp_path)) == list(outcomes)
    assert batch.ok
    assert runtime.closed


async def test_an_outcome_is_told_when_its_line_is_in_the_file(tmp_path: Path) -> None:
    told: list[str] = []
    async for outcome in a_batch(tasks(5), tmp_path, FakeRuntime(Journal())).run():
        told.append(outcome.id)
        assert set(told) <= set(in_file(tmp_path))

    assert len(told) == 5


async def test_no_more_runs_are_in_flight_than_were_asked_for(tmp_path: Path) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(20), tmp_path, runtime, concurrency=3)
    command = asyncio.create_task(outcomes_of(batch))

    for ending in range(20):
        await runtime.until_in_flight(min(3, 20 - ending))
        run_id = min(runtime.in_flight)
        runtime.end(run_id, ended(runtime.journal.specs[run_id]))

    assert len(await command) == 20
    assert runtime.peak == 3


async def test_tasks_wait_while_nobody_takes_outcomes(tmp_path: Path) -> None:
    taken = []

    def endless() -> Iterator[str]:
        for number in range(1_000_000):
            taken.append(number)
            yield f"task {number}"

    batch = a_batch(endless(), tmp_path, FakeRuntime(Journal()), concurrency=3)
    async with aclosing(batch.run()) as outcomes:
        async for _ in outcomes:
            for _ in range(1000):
                await asyncio.sleep(0)
            break

    # One that was taken, one on offer, three that hold their places, one that waits.
    assert len(taken) <= 6
    assert batch.ending == "interrupted"


async def test_the_same_command_again_does_nothing_twice(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal)))
    runs = len(journal.specs)

    again = a_batch(tasks(5), tmp_path, FakeRuntime(journal))

    assert set(await outcomes_of(again)) == {"t4", "t5"}
    assert len(journal.specs) == runs + 2
    assert again.ok


async def test_what_was_done_before_is_counted_once(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal)))
    again = a_batch(tasks(5), tmp_path, FakeRuntime(journal))
    await outcomes_of(again)
    command = again.summary["command"]
    assert (command["done_before"], command["ended"], command["not_ended"]) == (3, 2, 0)


async def test_an_unfinished_run_goes_on_under_its_name(tmp_path: Path) -> None:
    journal = Journal()
    first = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(2), tmp_path, first)
    command = asyncio.create_task(outcomes_of(batch))
    await first.until_in_flight(2)
    batch.park()
    assert await command == {}
    assert batch.ending == "interrupted"

    second = FakeRuntime(journal)
    outcomes = await outcomes_of(a_batch(tasks(2), tmp_path, second))

    assert {one.run_id for one in outcomes.values()} == set(journal.specs) == set(second.resumed)
    assert {one.attempt for one in outcomes.values()} == {1}


async def test_a_moved_run_directory_is_refused_before_a_runtime_is_opened(tmp_path: Path) -> None:
    journal, given = Journal(), tmp_path / "given"
    given.mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(given)}
    first = FakeRuntime(journal, never_ends)
    batch = a_batch([task], tmp_path / "run", first)
    command = asyncio.create_task(outcomes_of(batch))
    await first.until_in_flight(1)
    batch.park()
    await command
    (tmp_path / "run").rename(tmp_path / "moved")
    second = FakeRuntime(journal)

    with pytest.raises(BadInputError, match="the run directory was copied or moved"):
        await outcomes_of(a_batch([task], tmp_path / "moved", second))

    assert not second.opened


@pytest.mark.parametrize("on_change", ["accept", "retry"])
@pytest.mark.parametrize("over", [False, True])
async def test_a_run_that_works_elsewhere_is_begun_anew_here_unless_it_is_over(
    tmp_path: Path, over: bool, on_change: str
) -> None:
    journal, given = Journal(), tmp_path / "given"
    given.mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(given)}
    first = FakeRuntime(journal, always_done if over else never_ends)
    batch = a_batch([task], tmp_path / "run", first)
    command = asyncio.create_task(outcomes_of(batch))
    if not over:
        await first.until_in_flight(1)
        batch.park()
    await command
    (begun,) = journal.specs
    here = (tmp_path / "run").rename(tmp_path / "moved")
    (here / "results.jsonl").unlink(missing_ok=True)

    second = FakeRuntime(journal)
    outcomes = await outcomes_of(a_batch([task], here, second, on_change=on_change))

    assert second.resumed == []
    assert (outcomes["t1"].run_id == begun, outcomes["t1"].attempt) == (over, 1 if over else 2)
    assert journal.ends[begun].status == ("done" if over else "cancelled")
    spec = journal.specs[outcomes["t1"].run_id or ""]
    assert spec.workspace is not None
    assert spec.workspace.path.startswith(str(here)) is not over


async def test_a_line_that_was_lost_is_rebuilt_from_the_journal(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal)))
    results = tmp_path / "results.jsonl"
    whole = results.read_bytes()
    results.write_bytes(whole[:-40])

    outcomes = await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal)))

    assert list(outcomes) == ["t3"]
    assert results.read_bytes() == whole
    assert len(journal.specs) == 3


async def test_a_rebuilt_line_has_its_check(tmp_path: Path) -> None:
    journal = Journal()
    task = {"id": "t1", "task": "x", "check": {"command": "exit 3"}}
    await outcomes_of(a_batch([task], tmp_path, FakeRuntime(journal)))
    (tmp_path / "results.jsonl").unlink()

    outcomes = await outcomes_of(a_batch([task], tmp_path, FakeRuntime(journal)))

    check = outcomes["t1"].check
    assert check is not None
    assert check.exit_code == 3


@pytest.mark.parametrize("begun", [True, False])
async def test_a_run_whose_workspace_is_gone_is_not_scored_on_an_empty_one(
    tmp_path: Path, begun: bool
) -> None:
    def script(spec: RunSpec) -> HarnessResult:
        return ended(spec) if begun else replace(ended(spec), turn_count=0, usage=Usage())

    journal = Journal()
    (tmp_path / "given").mkdir()
    given = str(tmp_path / "given")
    task = {"id": "t1", "task": "x", "workspace": given, "check": {"command": "true"}}
    await outcomes_of(a_batch([task], tmp_path, FakeRuntime(journal, script)))
    (tmp_path / "results.jsonl").unlink()
    shutil.rmtree(tmp_path / "workspaces")

    check = (await outcomes_of(a_batch([task], tmp_path, FakeRuntime(journal))))["t1"].check

    assert check is not None
    assert check.passed is not begun
    assert begun is check.output.startswith("not checked: ")
    assert begun is ("was removed or moved away that the run worked in" in check.output)
    assert begun is ("--retry-failed begins the task anew" in check.output)


async def test_a_task_that_was_changed_is_a_new_one(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch([{"id": "a", "task": "x"}], tmp_path, FakeRuntime(journal)))
    stopped = FakeRuntime(journal, never_ends)
    batch = a_batch([{"id": "b", "task": "x"}], tmp_path, stopped)
    command = asyncio.create_task(outcomes_of(batch))
    await stopped.until_in_flight(1)
    batch.park()
    await command

    changed = [{"id": "a", "task": "y"}, {"id": "b", "task": "y"}]
    runtime = FakeRuntime(journal)
    outcomes = await outcomes_of(a_batch(changed, tmp_path, runtime))

    assert set(outcomes) == {"a", "b"}
    assert runtime.resumed == []
    assert sorted(in_file(tmp_path)) == ["a", "b"]


async def test_every_ending_is_final_unless_failures_are_retried(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal, failing("t2"))))

    plain = a_batch(tasks(3), tmp_path, FakeRuntime(journal))
    assert await outcomes_of(plain) == {}
    assert not plain.ok

    retrying = a_batch(tasks(3), tmp_path, FakeRuntime(journal), retry_failed=True)
    outcomes = await outcomes_of(retrying)

    assert {name: one.attempt for name, one in outcomes.items()} == {"t2": 2}
    assert retrying.ok
    assert in_file(tmp_path) == {"t1": "done", "t3": "done", "t2": "done"}


async def test_a_failed_check_is_a_failure_to_retry(tmp_path: Path) -> None:
    journal = Journal()
    task = {"id": "t1", "task": "x", "check": {"command": f"test -e {tmp_path}/fixed"}}
    first = a_batch([task], tmp_path / "run", FakeRuntime(journal))
    await outcomes_of(first)
    assert not first.ok
    (tmp_path / "fixed").touch()

    again = a_batch([task], tmp_path / "run", FakeRuntime(journal), retry_failed=True)
    await outcomes_of(again)

    assert again.ok


async def test_a_retry_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(journal, failing("t1"))))
    stopped = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(1), tmp_path, stopped, retry_failed=True)
    command = asyncio.create_task(outcomes_of(batch))
    await stopped.until_in_flight(1)
    batch.park()
    await command

    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(journal)))

    assert outcomes["t1"].attempt == 2
    assert in_file(tmp_path) == {"t1": "done"}


async def test_a_run_that_failed_gets_another_attempt_in_a_fresh_workspace(tmp_path: Path) -> None:
    journal = Journal()

    def fails_twice(spec: RunSpec) -> HarnessResult:
        fails = spec.metadata["attempt"] < 3
        return ended(spec, "failed", "model_error") if fails else ended(spec)

    (tmp_path / "start").mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(tmp_path / "start")}
    batch = a_batch([task], tmp_path / "run", FakeRuntime(journal, fails_twice), retry_on_error=2)
    outcomes = await outcomes_of(batch)

    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("done", 3)
    folders = {spec.workspace.path for spec in journal.specs.values() if spec.workspace}
    assert len(folders) == 3
    assert in_file(tmp_path / "run") == {"t1": "done"}


@pytest.mark.parametrize("interrupted", [False, True])
async def test_a_task_has_no_more_retries_than_it_was_given(
    tmp_path: Path, interrupted: bool
) -> None:
    """Those of an earlier command count as well, where its last attempt goes on."""
    journal = Journal()

    def fails(spec: RunSpec) -> HarnessResult | None:
        if interrupted and spec.metadata["attempt"] == 2 and not again.is_set():
            return None
        return ended(spec, "failed", "model_error")

    again = asyncio.Event()
    if interrupted:
        first = FakeRuntime(journal, fails)
        batch = a_batch(tasks(1), tmp_path, first, retry_on_error=2)
        command = asyncio.create_task(outcomes_of(batch))
        while len(journal.specs) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        batch.park()
        await command
    again.set()

    batch = a_batch(tasks(1), tmp_path, FakeRuntime(journal, fails), retry_on_error=2)
    async with asyncio.timeout(20):
        outcomes = await outcomes_of(batch)

    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("failed", 3)
    assert batch.tally.retried == (1 if interrupted else 2)


async def test_a_task_that_is_run_again_has_all_its_retries(tmp_path: Path) -> None:
    journal = Journal()
    first = FakeRuntime(journal, failing("t1"))
    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, first, retry_on_error=1))
    assert outcomes["t1"].attempt == 2

    second = FakeRuntime(journal, failing("t1"))
    again = a_batch(tasks(1), tmp_path, second, retry_on_error=1, retry_failed=True)
    outcomes = await outcomes_of(again)

    assert outcomes["t1"].attempt == 4
    assert again.tally.retried == 1


@pytest.mark.parametrize(
    ("kind", "attempts"), [("model_error", 2), ("executor_lost", 2), ("store_error", 1)]
)
async def test_only_failures_that_may_go_away_are_retried(
    tmp_path: Path, kind: str, attempts: int
) -> None:
    journal = Journal()
    runtime = FakeRuntime(journal, failing("t1", kind=kind))

    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, runtime, retry_on_error=1))

    assert outcomes["t1"].attempt == attempts
    assert outcomes["t1"].error == {"type": kind, "message": f"because of {kind}"}


async def test_a_spent_budget_starts_nothing_new_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    journal = Journal()

    def costs(spec: RunSpec) -> HarnessResult:
        return ended(spec, cost_usd=1.0)

    poor = a_batch(tasks(9), tmp_path, FakeRuntime(journal, costs), concurrency=1, budget_usd=3)
    assert len(await outcomes_of(poor)) == 3
    assert (poor.ending, poor.ok, poor.tally.left) == ("budget", False, 6)

    same = a_batch(tasks(9), tmp_path, FakeRuntime(journal, costs), concurrency=1, budget_usd=3)
    assert await outcomes_of(same) == {}

    rich = a_batch(tasks(9), tmp_path, FakeRuntime(journal, costs), concurrency=1, budget_usd=99)
    assert len(await outcomes_of(rich)) == 6
    assert rich.ok


async def test_what_is_in_flight_when_the_budget_is_spent_is_brought_to_its_end(
    tmp_path: Path,
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(9), tmp_path, runtime, concurrency=2, budget_usd=1)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(2)
    for run_id in list(runtime.in_flight):
        runtime.end(run_id, ended(runtime.journal.specs[run_id], cost_usd=1.0))

    assert set(await command) == {"t1", "t2"}


async def test_a_failure_that_spends_the_budget_is_retried_by_the_next_command(
    tmp_path: Path,
) -> None:
    journal = Journal()

    def fails_once(spec: RunSpec) -> HarnessResult:
        if spec.metadata["attempt"] == 1:
            return ended(spec, "failed", "model_error", cost_usd=1.0)
        return ended(spec)

    poor = FakeRuntime(journal, fails_once)
    batch = a_batch(tasks(1), tmp_path, poor, retry_on_error=1, budget_usd=1)
    async with asyncio.timeout(5):
        assert await outcomes_of(batch) == {}
    assert (batch.ending, batch.tally.retried) == ("budget", 0)

    rich = FakeRuntime(journal, fails_once)
    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, rich, retry_on_error=1))
    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("done", 2)


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize(("bound", "ends"), [(1, 1), (2, 2), (0.5, 5), (0.01, 1)])
async def test_too_many_failures_start_nothing_new(
    tmp_path: Path, bound: float, ends: int, bad: bool
) -> None:
    everything = FakeRuntime(Journal(), failing(*(f"t{number}" for number in range(1, 11))))
    given = [{"id": f"t{number}"} for number in range(1, 11)] if bad else tasks(10)
    batch = a_batch(given, tmp_path, everything, concurrency=1, fail_on_error=bound)

    assert len(await outcomes_of(batch)) == ends
    assert batch.ending == "failures"


async def test_the_end_is_called_by_what_came_first(tmp_path: Path) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "model_error", cost_usd=1.0)

    for budget_usd, ending in ((2, "budget"), (3, "failures")):
        runtime, folder = FakeRuntime(Journal(), fails), tmp_path / ending
        batch = a_batch(
            tasks(9), folder, runtime, concurrency=1, budget_usd=budget_usd, fail_on_error=2
        )
        assert len(await outcomes_of(batch)) == 2
        assert batch.ending == ending


async def test_a_task_that_cannot_be_run_is_an_outcome(tmp_path: Path) -> None:
    given = [{"id": "bad", "tsk": "x"}, {"id": "good", "task": "x"}, {"id": "good", "task": "y"}]
    batch = a_batch(given, tmp_path, FakeRuntime(Journal()))

    outcomes = await outcomes_of(batch)

    assert outcomes["good"].ok
    assert {one.reason.kind for name, one in outcomes.items() if name != "good"} == {"bad_input"}
    assert outcomes["bad"].run_id is None
    assert await outcomes_of(a_batch(given, tmp_path, FakeRuntime(Journal()))) == {}


async def test_a_task_whose_agent_file_is_bad_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("colour: green")
    given = [{"id": "t1", "task": "x", "agent": str(tmp_path / "a.yaml")}]

    outcomes = await outcomes_of(a_batch(given, tmp_path / "run", FakeRuntime(Journal())))

    assert "colour: there is no such field" in outcomes["t1"].reason.message


async def test_tasks_are_run_with_limits_and_metadata_of_their_own(tmp_path: Path) -> None:
    journal = Journal()
    given = [{"id": "t1", "task": "x", "limits": {"max_turns": 2}, "metadata": {"level": 3}}]

    outcomes = await outcomes_of(a_batch(given, tmp_path, FakeRuntime(journal), epochs=2))

    assert {spec.config.max_turns for spec in journal.specs.values()} == {2}
    assert tasks_of(journal.specs.values()) == ["t1", "t1@2"]
    assert outcomes["t1@2"].metadata == {"level": 3}


async def test_a_runtime_that_fails_ends_the_command_and_the_same_goes_on(tmp_path: Path) -> None:
    journal = Journal()
    runtime = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(3), tmp_path, runtime, concurrency=2)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(2)
    runtime.break_down(StoreError("runs.db", "no space left on device"))

    with pytest.raises(StoreError, match="no space left"):
        await command
    assert batch.ending == "error"
    assert runtime.closed

    outcomes = await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal)))
    assert len(outcomes) == len(journal.specs) == 3


class SlowToTake(FakeRuntime):
    """Serves a run only when it is let, as one that starts or reads its journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, never_ends)
        self.asked = asyncio.Event()
        self.takes = asyncio.Event()

    async def submit(
        self, specs: Sequence[RunSpec], *, code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        await self._until_let()
        await super().submit(specs, code=code, secrets=secrets)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        await self._until_let()
        await super().resume(run_ids, secrets=secrets)

    async def _until_let(self) -> None:
        self.asked.set()
        await self.takes.wait()


async def test_runs_that_come_while_a_call_is_made_go_together_with_what_each_of_them_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key of the other")
    (tmp_path / "own.yaml").write_text("model: m")
    own = {"agent": str(tmp_path / "own.yaml")}
    given = [{**task, **own} if at % 2 else task for at, task in enumerate(tasks(5))]
    agent = an_agent(Keyed(completes_at_once))
    runtime = SlowToTake(Journal())
    batch = a_batch(given, tmp_path / "run", runtime, agent=agent)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.asked.wait()
    while batch.tally.running < 5:  # noqa: ASYNC110
        await asyncio.sleep(0)
    runtime.takes.set()
    await runtime.until_in_flight(5)
    batch.park()
    await command

    assert runtime.calls == [["t1"], ["t2", "t3", "t4", "t5"]]
    keys = {"OPENAI_API_KEY": "key of the other", "KEY": "key of the batch"}
    assert runtime.secrets == keys

    # Those that go on have theirs of this command: no journal has them.
    again = FakeRuntime(runtime.journal)
    await outcomes_of(a_batch(given, tmp_path / "run", again, agent=agent))
    assert (again.calls, len(again.resumed), again.secrets) == ([], 5, keys)


class LateToReturn(FakeRuntime):
    """Tells all that becomes of a run before its call returns, as one on another process may."""

    async def submit(
        self, specs: Sequence[RunSpec], *, code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        await super().submit(specs, code=code, secrets=secrets)
        await self.until_noted(len(self.journal.log))

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        await super().resume(run_ids, secrets=secrets)
        await self.until_noted(len(self.journal.log))


async def test_an_end_that_is_told_before_a_run_is_known_to_be_served_is_not_missed(
    tmp_path: Path,
) -> None:
    journal = Journal()
    first = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(1), tmp_path, first)
    command = asyncio.create_task(outcomes_of(batch))
    await first.until_in_flight(1)
    batch.park()
    await command

    runtime = LateToReturn(journal)
    async with asyncio.timeout(20):
        outcomes = await outcomes_of(a_batch(tasks(3), tmp_path, runtime, concurrency=1))

    assert [outcomes[f"t{at}"].status for at in (1, 2, 3)] == ["done"] * 3
    assert len(runtime.resumed) == 1


@pytest.mark.parametrize("how", ["park", "park_now"])
@pytest.mark.parametrize("begun", [False, True])
async def test_a_run_on_its_way_to_the_runtime_is_stopped_with_the_others(
    tmp_path: Path, how: str, begun: bool
) -> None:
    journal = Journal()
    if begun:
        first = FakeRuntime(journal, never_ends)
        earlier = a_batch(tasks(1), tmp_path, first)
        command = asyncio.create_task(outcomes_of(earlier))
        await first.until_in_flight(1)
        earlier.park()
        await command
    runtime = SlowToTake(journal)
    batch = a_batch(tasks(1), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.asked.wait()

    # The others are stopped before it is there.
    getattr(batch, how)()
    runtime.takes.set()

    async with asyncio.timeout(3):
        assert await command == {}
    assert (batch.ending, batch.tally.parked) == ("interrupted", 1)


class SlowToStop(SlowToTake):
    """Takes the run that is on its way while it stops the others."""

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        unserved = await super().stop(run_ids, mode)
        if not self.takes.is_set():
            self.takes.set()
            await self.until_in_flight(1)
        return unserved


async def test_a_run_that_is_served_while_the_others_are_stopped_is_stopped_too(
    tmp_path: Path,
) -> None:
    runtime = SlowToStop(Journal())
    batch = a_batch(tasks(1), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.asked.wait()

    batch.park()

    async with asyncio.timeout(20):
        assert await command == {}
    assert batch.tally.parked == 1


@pytest.mark.parametrize("mode", ["park", "park_now"])
async def test_a_batch_that_is_stopped_while_its_runtime_starts_begins_nothing(
    tmp_path: Path, mode: str
) -> None:
    opening, opened = asyncio.Event(), asyncio.Event()
    runtime = FakeRuntime(Journal())
    batch = a_batch(tasks(2), tmp_path, runtime)

    async def open_it(_: Path) -> FakeRuntime:
        opening.set()
        await opened.wait()
        return runtime

    batch._open_runtime = open_it
    command = asyncio.create_task(outcomes_of(batch))
    await opening.wait()
    (batch.park if mode == "park" else batch.park_now)()
    opened.set()
    assert await command == {}
    assert not runtime.journal.specs
    assert batch.ending == "interrupted"


@pytest.mark.parametrize("mode", ["park", "park_now"])
async def test_a_batch_that_is_stopped_while_it_looks_around_opens_no_runtime(
    tmp_path: Path, mode: str
) -> None:
    first = FakeRuntime(Journal(), never_ends)
    earlier = a_batch(tasks(2), tmp_path, first)
    command = asyncio.create_task(outcomes_of(earlier))
    await first.until_in_flight(2)
    earlier.park()
    await command
    again = FakeRuntime(first.journal)
    batch = a_batch(tasks(2), tmp_path, again)

    (batch.park if mode == "park" else batch.park_now)()

    assert await outcomes_of(batch) == {}
    assert (again.opened, batch.ending) == (False, "interrupted")


async def test_a_runtime_that_does_not_come_up_keeps_nobody_who_leaves_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_actors.batch.batch.LEAVE_S", 600.0)
    opening = asyncio.Event()
    batch = a_batch(tasks(2), tmp_path, FakeRuntime(Journal()))

    async def open_it(_: Path) -> FakeRuntime:
        opening.set()
        await asyncio.Future()
        raise AssertionError

    batch._open_runtime = open_it
    command = asyncio.create_task(outcomes_of(batch))
    await opening.wait()
    batch.park_now()

    async with asyncio.timeout(30):
        assert await command == {}
    assert batch.ending == "interrupted"


@pytest.mark.parametrize("how", ["park", "park_now"])
async def test_a_batch_that_is_stopped_begins_none_of_the_tasks_that_wait(
    tmp_path: Path, how: str
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(3), tmp_path, runtime, concurrency=1)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(1)

    getattr(batch, how)()

    assert await command == {}
    assert tasks_of(runtime.journal.specs.values()) == ["t1"]
    assert batch.ending == "interrupted"
    command_told = batch.summary["command"]
    assert (command_told["parked"], command_told["not_ended"]) == (1, 3)


class SlowToPark(FakeRuntime):
    """Parks a run only when it is let, as one in the middle of a tool."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, never_ends)
        self.asked = asyncio.Event()
        self.parks = asyncio.Event()

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        self.asked.set()
        await self.parks.wait()
        return await super().stop(run_ids, mode)


@pytest.mark.parametrize("in_time", [True, False])
async def test_runs_have_some_time_to_park_before_a_command_leaves_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    monkeypatch.setattr("harness_actors.batch.batch.LEAVE_S", 600.0 if in_time else 0.01)
    runtime = SlowToPark(Journal())
    batch = a_batch(tasks(1), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(1)

    batch.park_now()
    await runtime.asked.wait()
    if in_time:
        await asyncio.sleep(0.05)
        runtime.parks.set()

    async with asyncio.timeout(30):
        assert await command == {}
    assert (batch.ending, batch.tally.parked) == ("interrupted", int(in_time))
    assert runtime.closed


async def test_runs_that_the_runtime_puts_aside_make_room_and_are_what_the_end_is_called(
    tmp_path: Path,
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(3), tmp_path, runtime, concurrency=1)
    command = asyncio.create_task(outcomes_of(batch))
    for at in range(3):
        await runtime.until_in_flight(1)
        (run_id,) = runtime.in_flight
        if at == 1:
            runtime.end(run_id, ended(runtime.journal.specs[run_id]))
        else:
            # As for lack of a key.
            await runtime.stop([run_id], "park")

    assert (await command).keys() == {"t2"}
    assert (batch.ending, batch.ok) == ("parked", False)
    assert (batch.tally.parked, batch.summary["unfinished"]["runs"]) == (2, 2)


@pytest.mark.parametrize("fails", [True, False])
async def test_a_summary_that_cannot_be_written_is_told_unless_something_else_was_before(
    tmp_path: Path, fails: bool
) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    batch = a_batch(tasks(1), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(1)
    (tmp_path / "summary.json").mkdir()
    (tmp_path / "summary.json" / "file").touch()
    if fails:
        runtime.break_down(StoreError("runs.db", "no space left on device"))
    else:
        (run_id,) = runtime.in_flight
        runtime.end(run_id, ended(runtime.journal.specs[run_id]))

    with pytest.raises(StoreError, match="no space left" if fails else "Is a directory"):
        await command
    assert runtime.closed


@pytest.mark.parametrize(
    ("status", "kind", "scored"),
    [
        ("done", "completed", True),
        ("limit", "max_turns", True),
        ("stalled", "no_completion", True),
        ("failed", "agent_error", False),
        ("cancelled", "user", False),
    ],
)
async def test_what_was_left_in_the_middle_of_something_is_not_scored(
    tmp_path: Path, status: Status, kind: str, scored: bool
) -> None:
    def ends(spec: RunSpec) -> HarnessResult:
        return ended(spec, status, kind)

    task = {"id": "t1", "task": "x", "check": {"command": "true"}}
    batch = a_batch([task], tmp_path, FakeRuntime(Journal(), ends))
    outcome = (await outcomes_of(batch))["t1"]

    assert (outcome.check is not None) is scored
    assert outcome.verdict == ("ok" if status == "done" else status)


@pytest.mark.parametrize("spoilt", [False, True])
async def test_a_check_stands_on_what_the_task_gave_before_its_run_began(
    tmp_path: Path, spoilt: bool
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text("all:\n\t@echo given\n")

    def script(spec: RunSpec) -> HarnessResult:
        assert spec.workspace is not None
        (Path(spec.workspace.path) / "Makefile").write_text("all:\n\t@true\n")
        if spoilt:
            (source / "Makefile").write_text("all:\n\t@true\n")
        return ended(spec)

    task = {"id": "t1", "task": "x", "workspace": str(source), "check": {"command": "make"}}
    batch = a_batch([task], tmp_path / "run", FakeRuntime(Journal(), script))
    check = (await outcomes_of(batch))["t1"].check

    assert check is not None
    assert check.passed is not spoilt
    if spoilt:
        assert check.output.startswith(f"not checked: {source}: what it gives to checks was")
    else:
        assert (check.output, check.left_out) == ("given", ("Makefile",))


async def test_a_second_command_on_the_directory_is_refused(tmp_path: Path) -> None:
    runtime = FakeRuntime(Journal(), never_ends)
    first = a_batch(tasks(1), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(first))
    await runtime.until_in_flight(1)

    with pytest.raises(StoreInUseError):
        await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(Journal())))

    first.park_now()
    await command


async def test_parking_lets_a_check_come_to_its_end(tmp_path: Path) -> None:
    begun, goes_on = tmp_path / "begun", tmp_path / "goes_on"
    os.mkfifo(begun)
    os.mkfifo(goes_on)
    check = {"command": f"echo > {begun}; head -n 1 {goes_on}"}
    task = {"id": "t1", "task": "x", "check": check}
    batch = a_batch([task, *tasks(3)[1:]], tmp_path / "run", FakeRuntime(Journal()), concurrency=1)
    work = asyncio.create_task(outcomes_of(batch))
    await asyncio.to_thread(begun.read_text)

    batch.park()
    # Open at both ends: whoever writes waits for nobody, a check that is cut included.
    with goes_on.open("r+b", buffering=0) as pipe:
        pipe.write(b"right\n")
        outcomes = await work
    assert outcomes.keys() == {"t1"}
    assert outcomes["t1"].check is not None
    assert outcomes["t1"].check.output == "right"
    assert batch.ending == "interrupted"


async def test_leaving_at_once_cuts_a_check_and_the_next_command_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_actors.batch.batch.LEAVE_S", 600.0)
    journal = Journal()
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    command = f"test -e {tmp_path}/quick || {{ echo > {begun}; sleep 300; }}"
    task = {"id": "t1", "task": "x", "check": {"command": command, "timeout_s": 400}}
    batch = a_batch([task], tmp_path / "run", FakeRuntime(journal))
    work = asyncio.create_task(outcomes_of(batch))
    await asyncio.to_thread(begun.read_text)
    assert (batch.tally.running, batch.tally.checking) == (0, 1)

    batch.park()
    batch.park_now()
    async with asyncio.timeout(30):
        assert await work == {}
    assert batch.tally.checking == 0
    assert batch.ending == "interrupted"
    unlisted = batch.summary["unlisted"]
    assert (unlisted["runs"], unlisted["to_be_written"]) == (1, 1)

    (tmp_path / "quick").touch()
    again = a_batch([task], tmp_path / "run", FakeRuntime(journal))
    assert (await outcomes_of(again))["t1"].ok
    assert len(journal.specs) == 1


async def test_the_summary_adds_everything_up(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(4), tmp_path, FakeRuntime(journal, failing("t2", "t3"))))

    summary = json.loads((tmp_path / "summary.json").read_text())

    assert summary["ending"] == "complete"
    assert summary["statuses"] == {"done": 2, "failed": 2}
    assert summary["reasons"] == {"done(completed)": 2, "failed(model_error)": 2}
    assert summary["usage"]["input_tokens"] == 40
    assert summary["command"]["ended"] == 4
    assert summary["command"]["settings"]["concurrency"] == 10


@pytest.mark.parametrize(
    "settings",
    [
        *({name: bad} for name in ("concurrency", "epochs") for bad in (0, True, 1.5, "2", None)),
        *({"retry_on_error": bad} for bad in (-1, False, 0.5)),
        *({name: bad} for name in ("budget_usd", "fail_on_error") for bad in (0, -1, math.nan)),
        {"on_change": "perhaps"},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_by_name(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    (name,) = settings
    with pytest.raises(ConfigError, match=name):
        a_batch([], tmp_path, FakeRuntime(Journal(), always_done), **settings)


def test_settings_may_be_as_small_as_is_said() -> None:
    least = {"concurrency": 1, "epochs": 1, "retry_on_error": 0, "budget_usd": 0.01}
    settings = BatchSettings(fail_on_error=0.01, **least)  # type: ignore[arg-type]

    assert settings.as_mapping().items() >= least.items()
