"""Approvals that expire while a batch works: what nobody has decided in time is taken up again."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors.batch.batch import Batch
from harness_actors.batch.expiries import LONGEST_NAP_S, Expiries
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult, OpenQuestion
from harness_actors.testing import ManualClock
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    a_batch,
    asking,
    ended,
    outcomes_of,
    tasks,
)
from tests.batch.test_waiting import Asks, Watched, all_of, answer, holds, in_file, run_of

HOUR_S = 3600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Expiring(Watched):
    """A batch with runs that ask, one of which stays in flight.

    Args:
        folder: The run directory.
        clock: The time of the command.
        asking: The tasks whose runs ask.
        expires_s: Which of their questions are approvals, and after how long they expire.
    """

    def __init__(
        self,
        folder: Path,
        clock: ManualClock,
        *asking: str,
        expires_s: Mapping[str, float] | None = None,
        **more: Any,
    ) -> None:
        self.clock = clock
        more.setdefault("journal", Journal(now=clock.now))
        expires_at = {
            name: clock.now() + seconds for name, seconds in (expires_s or {"q1": HOUR_S}).items()
        }
        super().__init__(folder, *asking, expires_at=expires_at, clock=clock, **more)

    async def until_it_waits(self) -> None:
        await self.until(("t1", "awaiting_input"))
        await self.runtime.until_noted(len(self.journal.log))

    async def pass_by(self, seconds: float) -> None:
        """Let time pass for a command that waits for it."""
        async with asyncio.timeout(20):
            await self.clock.until_sleeping()
        self.clock.advance(seconds)

    async def pass_by_in_vain(self, seconds: float) -> None:
        """Let time pass that is not enough: the command goes on waiting for it."""
        await self.pass_by(seconds)
        async with asyncio.timeout(20):
            await self.clock.until_sleeping()
        assert (self.runtime.resumed, self.batch.tally.waiting) == ([], 1)

    async def until_nothing_waits(self) -> None:
        await until_nothing_waits(self.batch)


async def until_nothing_waits(batch: Batch) -> None:
    async with asyncio.timeout(20):
        while batch.tally.waiting:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0)


class Later:
    """A command on the runs that an earlier one has left, with a run of its own in flight."""

    def __init__(self, folder: Path, runtime: FakeRuntime, clock: ManualClock) -> None:
        self.runtime = runtime
        self.batch = a_batch(tasks(2), folder, runtime, clock=clock)
        self._command = asyncio.create_task(all_of(self.batch))

    async def finish(self) -> list[TaskOutcome]:
        """End the run in flight, and the batch: what it told of the other task."""
        journal = self.runtime.journal
        run_id = run_of(journal, "t2")
        self.runtime.end(run_id, ended(journal.specs[run_id]))
        async with asyncio.timeout(20):
            return [one for one in await self._command if one.id == "t1"]


async def left_waiting(folder: Path, journal: Journal, clock: ManualClock) -> Asks:
    """A command has left the run of its only task to wait for an hour: what that does later on."""
    expires_at = {"q1": clock.now() + HOUR_S}
    script = Asks(journal, {"t1": ("q1",)}, holds("t2"), expires_at=expires_at)
    await outcomes_of(a_batch(tasks(1), folder, FakeRuntime(journal, script), clock=clock))
    return script


# ---- while the batch goes on ---------------------------------------------------------


async def test_a_run_whose_approval_has_expired_is_taken_up_while_the_batch_goes_on(
    tmp_path: Path, clock: ManualClock
) -> None:
    work = Expiring(tmp_path, clock, "t1")
    await work.until_it_waits()
    await work.pass_by_in_vain(HOUR_S - 1.0)

    await work.pass_by(1.0)

    await work.until(("t1", "done"))
    assert work.batch.tally.waiting == 0
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert work.runtime.resumed == [run_of(work.journal, "t1")]
    assert work.batch.ok
    assert sorted(in_file(tmp_path)) == ["t1", "t2"]


async def test_runs_are_taken_up_as_they_expire_and_not_as_they_began_to_wait(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)
    expires_at = {"q1": clock.now() + 2 * HOUR_S, "q2": clock.now() + HOUR_S}
    asked = {"t1": ("q1",), "t2": ("q2",)}
    runtime = FakeRuntime(journal, Asks(journal, asked, holds("t3"), expires_at=expires_at))
    batch = a_batch(tasks(3), tmp_path, runtime, clock=clock)
    command = asyncio.create_task(all_of(batch))
    await runtime.until_in_flight(1)
    await runtime.until_noted(len(journal.log))

    async with asyncio.timeout(20):
        for count in (1, 2):
            await clock.until_sleeping()
            clock.advance(HOUR_S)
            await runtime.until_resumed(count)
    runtime.end(run_of(journal, "t3"), ended(journal.specs[run_of(journal, "t3")]))
    await command

    assert runtime.resumed == [run_of(journal, "t2"), run_of(journal, "t1")]
    assert batch.ok


async def test_a_run_is_taken_up_when_the_last_of_its_approvals_has_expired(
    tmp_path: Path, clock: ManualClock
) -> None:
    expires_s = {"q1": 2 * HOUR_S, "q2": HOUR_S}
    work = Expiring(tmp_path, clock, "t1", questions=("q1", "q2"), expires_s=expires_s)
    await work.until_it_waits()

    await work.pass_by_in_vain(HOUR_S)
    await work.pass_by(HOUR_S)

    await work.until(("t1", "done"))
    await work.finish()
    assert len(work.runtime.resumed) == 1


async def test_the_last_approval_is_given_and_the_others_expire(
    tmp_path: Path, clock: ManualClock
) -> None:
    expires_s = {"q1": HOUR_S, "q2": 2 * HOUR_S}
    work = Expiring(tmp_path, clock, "t1", questions=("q1", "q2"), expires_s=expires_s)
    await work.until_it_waits()

    await answer(work.runtime, "t1", "q2")
    await work.runtime.until_noted(len(work.journal.log))
    await work.pass_by(HOUR_S)

    await work.until(("t1", "done"))
    await work.finish()


async def test_a_question_that_does_not_expire_is_waited_for_and_then_nothing_else(
    tmp_path: Path, clock: ManualClock
) -> None:
    work = Expiring(tmp_path, clock, "t1", questions=("q1", "q2"))
    await work.until_it_waits()
    assert clock.sleeping == 0, "nothing but an answer lets it go on"
    clock.advance(HOUR_S)

    await answer(work.runtime, "t1", "q2")

    await work.until(("t1", "done"))
    await work.finish()
    assert work.batch.ok


async def test_a_run_that_is_answered_in_time_is_taken_up_once(
    tmp_path: Path, clock: ManualClock
) -> None:
    work = Expiring(tmp_path, clock, "t1")
    await work.until_it_waits()

    await answer(work.runtime, "t1")
    await work.until(("t1", "done"))
    clock.advance(2 * HOUR_S)

    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert len(work.runtime.resumed) == 1


async def test_a_run_that_has_expired_waits_for_a_place(tmp_path: Path, clock: ManualClock) -> None:
    work = Expiring(tmp_path, clock, "t1", concurrency=1)
    await work.until_it_waits()
    await work.runtime.until_in_flight(1)

    await work.pass_by(HOUR_S)
    await work.until_nothing_waits()

    assert work.runtime.resumed == []
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert work.runtime.peak == 1


async def test_a_run_that_has_expired_and_is_then_cancelled_is_over(
    tmp_path: Path, clock: ManualClock
) -> None:
    work = Expiring(tmp_path, clock, "t1", concurrency=1)
    await work.until_it_waits()
    await work.runtime.until_in_flight(1)

    await work.pass_by(HOUR_S)
    await work.until_nothing_waits()
    # Its place is not free yet.
    await work.runtime.stop([run_of(work.journal, "t1")], "cancel")

    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "cancelled")]
    assert work.runtime.resumed == []


async def test_a_run_that_asks_once_more_expires_once_more(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)

    def asks_twice(spec: RunSpec) -> HarnessResult | None:
        if spec.metadata["task_id"] != "t1":
            return None
        waited = journal.waits.get(spec.run_id)
        asked = 0 if waited is None else int(waited.questions[0].id[1:])
        name = f"q{asked + 1}"
        return ended(spec) if asked == 2 else asking(spec, name, expires_at={name: an_hour_on()})

    def an_hour_on() -> float:
        return clock.now() + HOUR_S

    runtime = FakeRuntime(journal, asks_twice)
    batch = a_batch(tasks(2), tmp_path, runtime, clock=clock)
    command = asyncio.create_task(all_of(batch))
    async with asyncio.timeout(20):
        for count in (1, 2):
            await clock.until_sleeping()
            clock.advance(HOUR_S)
            await runtime.until_resumed(count)
    runtime.end(run_of(journal, "t2"), ended(journal.specs[run_of(journal, "t2")]))

    told = [one.status for one in await command if one.id == "t1"]
    assert told == ["awaiting_input", "awaiting_input", "done"]


async def test_a_program_that_decides_nothing_leaves_a_run_to_expire(
    tmp_path: Path, clock: ManualClock
) -> None:
    asked: list[OpenQuestion] = []
    work = Expiring(tmp_path, clock, "t1", answerer=asked.append)
    await work.until_it_waits()

    await work.pass_by(HOUR_S)

    await work.until(("t1", "done"))
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert [one.expires_at for one in asked] == [clock.now()]


# ---- clocks that differ --------------------------------------------------------------


async def test_a_command_whose_clock_is_ahead_does_not_come_too_early(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=lambda: clock.now() - HOUR_S / 2)
    work = Expiring(tmp_path, clock, "t1", journal=journal)
    await work.until_it_waits()

    await work.pass_by_in_vain(HOUR_S)
    await work.pass_by(HOUR_S / 2)

    await work.until(("t1", "done"))
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert len(work.runtime.resumed) == 1


async def test_a_run_that_is_taken_up_too_early_is_taken_up_in_time_and_not_over_and_over(
    tmp_path: Path, clock: ManualClock
) -> None:
    """An earlier command has left it, so this one knows no clock but its own, which is ahead."""
    journal = Journal(now=lambda: clock.now() - HOUR_S / 2)
    script = await left_waiting(tmp_path, journal, clock)
    later = Later(tmp_path, FakeRuntime(journal, script), clock)
    resumed = later.runtime.resumed

    async with asyncio.timeout(20):
        await clock.until_sleeping()
        clock.advance(HOUR_S)
        await later.runtime.until_resumed(1)
        for _ in range(2):
            await clock.until_sleeping()
            assert len(resumed) == 1
            clock.advance(HOUR_S / 4)
        await later.runtime.until_resumed(2)

    assert [one.status for one in await later.finish()][-1] == "done"
    assert (later.batch.ok, later.batch.tally.waiting, len(resumed)) == (True, 0, 2)


# ---- beginning and end of a command --------------------------------------------------


async def test_a_batch_of_which_only_waiting_runs_are_left_does_not_wait_for_their_time(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)
    script = Asks(journal, {"t1": ("q1",)}, expires_at={"q1": clock.now() + 0.001})
    batch = a_batch(tasks(2), tmp_path, FakeRuntime(journal, script), clock=clock)

    async with asyncio.timeout(20):
        outcomes = await outcomes_of(batch)

    assert outcomes["t1"].status == "awaiting_input"
    assert (batch.ending, batch.tally.waiting, clock.sleeping) == ("waiting", 1, 0)


async def test_the_same_command_goes_on_with_what_has_expired_meanwhile(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)
    script = await left_waiting(tmp_path, journal, clock)
    clock.advance(HOUR_S)

    later = Later(tmp_path, FakeRuntime(journal, script), clock)
    await later.runtime.until_resumed(1)
    await later.runtime.until_in_flight(1)

    assert [one.status for one in await later.finish()] == ["done"]
    assert later.runtime.resumed == [run_of(journal, "t1")]
    assert later.batch.ok


async def test_a_run_of_an_earlier_command_is_taken_up_when_it_expires(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)
    later = Later(
        tmp_path, FakeRuntime(journal, await left_waiting(tmp_path, journal, clock)), clock
    )
    await later.runtime.until_in_flight(1)

    async with asyncio.timeout(20):
        await clock.until_sleeping()
        clock.advance(HOUR_S)
        await later.runtime.until_resumed(1)

    assert [one.status for one in await later.finish()] == ["awaiting_input", "done"]
    assert later.batch.ok


async def test_what_expires_behind_a_ctrl_c_is_the_next_commands(
    tmp_path: Path, clock: ManualClock
) -> None:
    work = Expiring(tmp_path, clock, "t1")
    await work.until_it_waits()
    await work.runtime.until_in_flight(1)

    work.batch.park()
    await work.pass_by(HOUR_S)
    async with asyncio.timeout(20):
        await work._command
    assert (work.batch.ending, work.runtime.resumed) == ("interrupted", [])
    assert work.batch.summary["waiting"] == {"tasks": 1, "answered": 1, "runs": []}

    script = Asks(work.journal, {"t1": ("q1",)})
    again = a_batch(tasks(2), tmp_path, FakeRuntime(work.journal, script), clock=clock)
    outcomes = await outcomes_of(again)
    assert {name: one.status for name, one in outcomes.items()} == {"t1": "done", "t2": "done"}


async def test_what_expires_when_the_budget_is_spent_is_left_for_a_larger_one(
    tmp_path: Path, clock: ManualClock
) -> None:
    journal = Journal(now=clock.now)
    expires_at = {"q1": clock.now() + HOUR_S}
    script = Asks(journal, {"t2": ("q1",)}, holds("t1"), cost_usd=2.0, expires_at=expires_at)
    runtime = FakeRuntime(journal, script)
    batch = a_batch(tasks(2), tmp_path, runtime, budget_usd=2.0, clock=clock)
    command = asyncio.create_task(all_of(batch))

    async with asyncio.timeout(20):
        await clock.until_sleeping()
        clock.advance(HOUR_S)
        await until_nothing_waits(batch)
        runtime.end(run_of(journal, "t1"), ended(journal.specs[run_of(journal, "t1")]))
        await command

    assert (batch.ending, runtime.resumed) == ("budget", [])
    assert batch.summary["waiting"] == {"tasks": 1, "answered": 1, "runs": []}


# ---- by themselves -------------------------------------------------------------------


async def test_the_earliest_is_told_first_whenever_it_was_put_down(clock: ManualClock) -> None:
    expiries = Expiries(clock)
    expiries.expect("late", clock.now() + 30.0)
    coming = asyncio.ensure_future(expiries.next())
    await clock.until_sleeping()

    expiries.expect("early", clock.now() + 10.0)
    await asyncio.sleep(0)
    await clock.until_sleeping()
    clock.advance(10.0)
    assert await asyncio.wait_for(coming, 5.0) == "early"

    clock.advance(20.0)
    assert await asyncio.wait_for(expiries.next(), 5.0) == "late"


async def test_what_is_forgotten_or_put_off_is_not_told(clock: ManualClock) -> None:
    expiries = Expiries(clock)
    for name in ("forgotten", "put off", "never", "kept"):
        expiries.expect(name, clock.now() + 10.0)
    expiries.forget("forgotten")
    expiries.expect("put off", clock.now() + 20.0)
    expiries.expect("never", None)

    clock.advance(15.0)
    assert await asyncio.wait_for(expiries.next(), 5.0) == "kept"
    clock.advance(15.0)
    assert await asyncio.wait_for(expiries.next(), 5.0) == "put off"


class Slept(ManualClock):
    """The clock of a machine that is put to sleep: what it waits for stands still meanwhile."""

    slept_s = 0.0

    def now(self) -> float:
        return super().now() + self.slept_s


async def test_a_machine_that_was_asleep_looks_at_the_clock_when_it_is_up_again() -> None:
    clock = Slept()
    expiries = Expiries(clock)
    expiries.expect("run", clock.now() + 24 * HOUR_S)
    coming = asyncio.ensure_future(expiries.next())
    await clock.until_sleeping()

    clock.slept_s = 24 * HOUR_S
    clock.advance(LONGEST_NAP_S)

    assert await asyncio.wait_for(coming, 5.0) == "run"
