import asyncio
from typing import Any

import pytest

from harness_actors.config import TurnLimits
from harness_actors.ports import ToolContext
from harness_actors.results import Usage
from harness_actors.signals import CompactionComplete, Parked, RunEnd, TurnComplete
from harness_actors.state import TURN_BEGAN, TURN_COUNT, USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.turn.bounds import Due
from harness_actors.turn.budget import TurnBudget
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.one_call import NO_CALLS_LEFT_IN_TURN
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)

WRITE = calls(("a", "write"))


def a_budget(driver: Driver, **limits: Any) -> tuple[TurnBudget, TurnMeter]:
    meter = TurnMeter(driver.open_context("agent_turn"), driver.clock)
    return TurnBudget(TurnLimits(**limits), Usage(), meter), meter


@pytest.mark.parametrize(
    ("limits", "turns"),
    [
        ({}, 1),
        ({"model_calls": 2}, 3),
        ({"tool_calls": 2}, 3),
        ({"tokens": 200}, 3),
        ({"tokens": 10**6, "model_calls": 100}, 1),
    ],
)
async def test_a_turn_that_has_used_what_it_may_ends_and_the_run_goes_on(
    limits: dict[str, int], turns: int
) -> None:
    used = Usage(model_calls=1, input_tokens=90, output_tokens=10)
    model = RecordingModel([*[WRITE] * 4, finishes()], usage=used)
    driver = Driver(SimpleAgent(model, [a_tool()]), turn_limits=limits)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert driver.value(TURN_COUNT) == turns
    assert driver.value(USAGE).tool_calls == 4


async def test_time_of_a_turn_is_what_was_worked_in_it() -> None:
    async def takes_long(_arguments: str, _context: ToolContext) -> str:
        driver.clock.advance(10.0)
        return "done"

    model = RecordingModel([*[WRITE] * 4, finishes()])
    driver = Driver(
        SimpleAgent(model, [SimpleTool("write", takes_long)]), turn_limits={"time_s": 15.0}
    )
    await driver.run()
    assert driver.value(TURN_COUNT) == 3
    assert driver.value(USAGE).working_s == 40.0


async def test_a_turn_has_a_model_call_however_little_it_may_use() -> None:
    async def slowly() -> None:
        driver.clock.advance(5.0)

    model = RecordingModel([WRITE, finishes()], before=slowly)
    driver = Driver(SimpleAgent(model, [a_tool()]), turn_limits={"time_s": 0.001})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert len(model.requests) == 2


async def test_calls_beyond_those_of_a_turn_are_not_made_and_the_model_is_told() -> None:
    write = a_tool()
    reply = calls(*((str(at), "write", f"[{at}]") for at in range(5)))
    model = RecordingModel([reply, finishes()])
    driver = Driver(SimpleAgent(model, [write]), turn_limits={"tool_calls": 3})
    await driver.serve("agent_turn", CompactionComplete())
    assert write.calls == ["[0]", "[1]", "[2]"]
    assert [result.text for result in driver.results()[3:]] == [NO_CALLS_LEFT_IN_TURN] * 2
    assert driver.value(USAGE).tool_calls == 3


async def test_a_call_in_progress_is_stopped_when_the_time_of_its_turn_is_over() -> None:
    async def hang(_arguments: str, _context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    model = RecordingModel([calls(("a", "hang")), finishes()])
    tool = SimpleTool("hang", hang, timeout_s=5.0)
    driver = Driver(SimpleAgent(model, [tool]), turn_limits={"time_s": 0.02})
    async with asyncio.timeout(10):
        outcome = await driver.serve("agent_turn", CompactionComplete())
    assert isinstance(outcome, TurnComplete)
    assert outcome.limit is None, "the run has no such limit"
    (result, *_) = driver.results()
    assert result.failure == "timed_out"
    assert result.text == "The turn's time was up before this call finished."


async def test_a_turn_that_was_put_aside_has_what_it_had_not_used() -> None:
    async def park() -> None:
        assert driver.context is not None
        driver.context.parking = True

    model = RecordingModel([*[WRITE] * 4, finishes()], before=park)
    driver = Driver(SimpleAgent(model, [a_tool()]), turn_limits={"model_calls": 2})
    end = await driver.run()
    while end == Parked():
        end = await driver.run(resumed=True)
    assert driver.value(TURN_COUNT) == 3
    assert driver.value(TURN_BEGAN).model_calls == 4


async def test_runs_without_such_bounds_have_no_entry_of_them() -> None:
    driver = Driver(SimpleAgent(RecordingModel([WRITE, finishes()]), [a_tool()]))
    await driver.run()
    assert TURN_BEGAN.name not in driver.state.values


def test_a_call_may_take_what_is_left_of_its_turn_and_no_more_than_its_own() -> None:
    driver = Driver(SimpleAgent(RecordingModel([])))
    budget, _ = a_budget(driver, time_s=10.0)
    assert budget.per_tool_remaining_s(None) == 10.0
    assert budget.per_tool_remaining_s(3.0) == 3.0
    driver.clock.advance(8.0)
    assert budget.per_tool_remaining_s(3.0) == 2.0
    unbounded, _ = a_budget(driver)
    assert unbounded.per_tool_remaining_s(None) is None


def test_the_bound_that_is_first_is_the_one_that_is_told() -> None:
    driver = Driver(SimpleAgent(RecordingModel([])))
    budget, _ = a_budget(driver, time_s=10.0)
    assert budget.sooner(Due(3.0, "time")) == Due(3.0, "time")
    assert budget.sooner(Due(30.0, "time")) == Due(10.0, None)
    assert budget.sooner(Due(None)) == Due(10.0, None)


async def test_a_model_that_only_speaks_is_judged_as_ever() -> None:
    model = RecordingModel([Reply.text("hm"), finishes()])
    driver = Driver(SimpleAgent(model), turn_limits={"model_calls": 1})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert model.requests[1].messages[-1].role == "user", "it was nudged"


def test_a_turn_is_not_over_before_its_first_model_call() -> None:
    driver = Driver(SimpleAgent(RecordingModel([])))
    budget, meter = a_budget(driver, time_s=1.0)
    driver.clock.advance(5.0)
    assert not budget.is_spent
    meter.rounds = 1
    assert budget.is_spent
