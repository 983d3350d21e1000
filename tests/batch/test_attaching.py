"""A command whose runs went on without it, in a cell that outlived it, and the next one."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.events import RunEvent
from harness_actors.records import RunHeading
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    a_batch,
    always_done,
    ended,
    never_ends,
    outcomes_of,
    tasks,
)


class Warm(FakeRuntime):
    """Serves what an earlier command has begun, whether it is asked to or not."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, always_done)
        self.in_flight = set(journal.specs.keys() - journal.ends.keys())
        self.when_placed: Callable[[], None] = lambda: None
        self.when_listed: Callable[[], None] = lambda: None
        self.when_read: Callable[[], None] = lambda: None

    async def resume(self, run_ids: Sequence[str], *, secrets: object) -> None:
        self.resumed += run_ids

    async def position(self) -> int:
        found = await super().position()
        self.when_placed()
        return found

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        found = await super().headings(beginning)
        self.when_listed()
        return found

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        self.when_read()
        return await super().events(run_id)

    def end_all(self) -> None:
        for run_id in sorted(self.in_flight):
            self.end(run_id, ended(self.journal.specs[run_id], cost_usd=1.0))


@pytest.fixture
async def journal(tmp_path: Path) -> Journal:
    """What a command leaves that is killed with two runs in flight."""
    runtime = FakeRuntime(Journal(), never_ends)
    command = asyncio.create_task(outcomes_of(a_batch(tasks(2), tmp_path, runtime)))
    await runtime.until_in_flight(2)
    command.cancel()
    await asyncio.wait((command,))
    return runtime.journal


async def test_what_goes_on_is_waited_for_and_not_begun_again(
    journal: Journal, tmp_path: Path
) -> None:
    runtime = Warm(journal)
    command = asyncio.create_task(outcomes_of(a_batch(tasks(2), tmp_path, runtime)))
    while len(runtime.resumed) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    runtime.end_all()

    outcomes = await command

    assert {outcome.status for outcome in outcomes.values()} == {"done"}
    assert {outcome.run_id for outcome in outcomes.values()} == journal.specs.keys()


@pytest.mark.parametrize("moment", ["when_placed", "when_listed", "when_read"])
async def test_what_ends_while_the_next_command_starts_is_collected_and_paid_for_once(
    journal: Journal, tmp_path: Path, moment: str
) -> None:
    runtime = Warm(journal)
    setattr(runtime, moment, runtime.end_all)
    # The third begins when one of the others is over, if there is money left by then.
    batch = a_batch(tasks(3), tmp_path, runtime, budget_usd=3.0, concurrency=2)

    async with asyncio.timeout(20):
        outcomes = await outcomes_of(batch)

    assert outcomes.keys() == {"t1", "t2", "t3"}
    assert batch.ending == "complete"
    assert len(journal.specs) == 3


@pytest.mark.parametrize("moment", ["when_placed", "when_listed", "when_read"])
async def test_what_was_spent_while_the_next_command_starts_begins_nothing_more(
    journal: Journal, tmp_path: Path, moment: str
) -> None:
    runtime = Warm(journal)
    setattr(runtime, moment, runtime.end_all)
    batch = a_batch(tasks(3), tmp_path, runtime, budget_usd=2.0, concurrency=2)

    async with asyncio.timeout(20):
        outcomes = await outcomes_of(batch)

    assert outcomes.keys() <= {"t1", "t2"}
    assert (batch.ending, len(journal.specs)) == ("budget", 2)


async def test_an_attempt_that_is_cancelled_late_does_not_end_the_one_that_took_its_place(
    journal: Journal, tmp_path: Path
) -> None:
    earlier = next(spec for spec in journal.specs.values() if spec.metadata["task_id"] == "t1")
    metadata = {**earlier.metadata, "attempt": 2}
    journal.specs["second"] = replace(earlier, run_id="second", metadata=metadata)
    runtime = Warm(journal)
    cut = ended(earlier, "cancelled", "user")
    runtime.when_listed = lambda: runtime.end(earlier.run_id, cut)

    async with asyncio.timeout(20):
        command = asyncio.create_task(outcomes_of(a_batch(tasks(2), tmp_path, runtime)))
        while len(runtime.resumed) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        runtime.end_all()
        outcome = (await command)["t1"]

    assert (outcome.run_id, outcome.attempt, outcome.status) == ("second", 2, "done")


async def test_a_command_without_a_budget_takes_back_that_of_the_one_before(
    journal: Journal, tmp_path: Path
) -> None:
    runtime = Warm(journal)
    runtime.allowed_usd = 1.0
    runtime.when_listed = runtime.end_all

    await outcomes_of(a_batch(tasks(2), tmp_path, runtime))

    assert runtime.allowed_usd is None
