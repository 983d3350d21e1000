"""Bounds that hold whoever serves a run, and when nobody does: the coordinator's own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness_actors.actors import Runtime
from harness_actors.actors.coordinator.alarm import Alarm
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import RoundCompleted
from harness_actors.ports import RunContext
from harness_actors.signals import Outcome, Signal
from harness_actors.testing import ManualClock, an_agent
from tests.actors.followers import opened, results, specs, submit, until
from tests.actors.test_ends_in_time import endless


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with opened("local", tmp_path / "runs.db") as runtime:
        yield runtime


class Hanging:
    """A user's own executor that does not come back, and hears nothing."""

    name = "hanging"
    reads = ()
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        for _ in range(3):
            try:
                await asyncio.sleep(2)
            except asyncio.CancelledError:
                continue
        return signal


async def test_time_ends_a_run_that_is_stuck_in_a_users_executor(runtime: Runtime) -> None:
    workflow = HarnessWorkflowBuilder(an_agent()).insert_after("compaction", Hanging()).build()
    program = Program.of(workflow)
    (spec,) = specs(program, 1, HarnessConfig(limits=Limits(time_s=0.3)))

    await submit(runtime, program, [spec])
    ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (ended.status, ended.reason.kind) == ("limit", "time")
    assert 0.3 <= ended.wall_s < 1.3


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("runs", "kind"),
    [
        (1, "local"),
        (4, "local"),
        pytest.param(1, "ray", marks=[pytest.mark.ray, pytest.mark.long]),
        pytest.param(4, "ray", marks=pytest.mark.ray),
    ],
)
async def test_a_spent_budget_ends_all_runs_after_their_round(
    tmp_path: Path, kind: str, runs: int
) -> None:
    program = endless()
    wanted = specs(program, runs)
    async with opened(kind, tmp_path / "runs.db") as runtime:
        await runtime.allow(10)
        await submit(runtime, program, wanted)
        async with asyncio.timeout(20):
            ended = await results(runtime, [spec.run_id for spec in wanted])

    assert {(e.status, e.reason.kind) for e in ended.values()} == {("limit", "budget")}
    assert all("10 USD" in e.reason.message for e in ended.values())
    spent = sum(e.usage.cost_usd for e in ended.values())
    assert 10 <= spent <= 10 + runs - 1, "the others were in flight when one spent the last"


async def test_a_budget_holds_when_the_driver_and_the_coordinator_are_gone(tmp_path: Path) -> None:
    store, program = tmp_path / "runs.db", endless()
    first, *others = specs(program, 3)
    async with opened("local", store, command="same") as runtime:
        await runtime.allow(40)
        await submit(runtime, program, [first, *others])
        await until(runtime, first.run_id, lambda event: isinstance(event, RoundCompleted))
    # Nobody says the budget again: the runs go on by themselves.
    async with opened("local", store, command="same") as runtime, asyncio.timeout(20):
        ended = await results(runtime, [first.run_id, *(spec.run_id for spec in others)])

    assert {(e.status, e.reason.kind) for e in ended.values()} == {("limit", "budget")}
    assert 40 <= sum(e.usage.cost_usd for e in ended.values()) <= 40 + 2


async def test_what_ended_runs_cost_counts_for_the_next_command(tmp_path: Path) -> None:
    store, program = tmp_path / "runs.db", endless()
    spent = 0.0
    for budget_usd in (5, 8):
        (spec,) = specs(program, 1)
        async with opened("local", store) as runtime:
            await runtime.allow(budget_usd)
            await submit(runtime, program, [spec])
            cursor = 0
            ended = (await results(runtime, [spec.run_id], cursor=cursor))[spec.run_id]
        spent += ended.usage.cost_usd
        assert ended.reason.kind == "budget"
        assert spent == budget_usd


# ---- the alarm ----------------------------------------------------------------------------------


async def test_an_alarm_rings_once_at_the_time_that_it_was_set_to_last() -> None:
    rings, clock = list[float](), ManualClock()
    rang = asyncio.Event()

    def ring() -> None:
        rings.append(loop.time())
        rang.set()

    loop = asyncio.get_running_loop()
    alarm, began = Alarm(clock, ring), loop.time()
    alarm.set(clock.now() + 60)
    alarm.set(clock.now() + 0.05)
    alarm.set(clock.now() + 0.05)
    await rang.wait()
    assert len(rings) == 1
    assert rings[0] - began >= 0.05 - 0.005


async def test_an_alarm_that_is_taken_back_does_not_ring() -> None:
    rings, clock = list[int](), ManualClock()
    alarm = Alarm(clock, lambda: rings.append(1))
    alarm.set(clock.now() + 0.02)
    alarm.set(None)
    await asyncio.sleep(0.06)
    assert not rings


async def test_an_alarm_for_a_time_that_is_over_rings_soon_and_not_at_once() -> None:
    rang, clock = asyncio.Event(), ManualClock()
    alarm = Alarm(clock, rang.set)
    alarm.set(clock.now() - 5)
    assert not rang.is_set()
    async with asyncio.timeout(1):
        await rang.wait()


async def test_an_alarm_that_rang_can_be_set_for_the_same_time_again() -> None:
    clock, again = ManualClock(), asyncio.Event()
    at, rings = clock.now(), list[int]()

    def ring() -> None:
        rings.append(1)
        if len(rings) == 1:
            # As where the clock is not there yet.
            alarm.set(at)
        else:
            again.set()

    alarm = Alarm(clock, ring)
    alarm.set(at)
    async with asyncio.timeout(5):
        await again.wait()
