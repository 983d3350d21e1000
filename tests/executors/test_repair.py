import asyncio

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.events import Repaired, RunResumed, RunStarted
from harness_actors.messages import Message, ToolCall
from harness_actors.signals import CustomSignal, RepairComplete, RepairTrigger
from harness_actors.state import (
    OPEN_CALLS,
    REPAIRS,
    REQUEST_TOKENS,
    STARTED,
    TURN_COUNT,
    OpenCall,
    StateDelta,
    Write,
)
from tests.executors.driver import Driver, RecordingModel, SimpleAgent


@pytest.fixture
def driver() -> Driver:
    return Driver(SimpleAgent(RecordingModel([])), "x" * 200, max_turns=25)


def left_open(driver: Driver, *calls: tuple[str, bool]) -> None:
    """Commit an assistant message whose calls, idempotent or not, have no result."""
    asked = [ToolCall(call_id, "tool", "{}") for call_id, _ in calls]
    index = tuple(
        OpenCall(call_id=call_id, tool_name="tool", idempotent=idempotent, turn=3)
        for call_id, idempotent in calls
    )
    driver.state.apply(
        StateDelta(
            writes=(
                Write(OPEN_CALLS.name, "set", OPEN_CALLS.encode(index)),
                Write(TURN_COUNT.name, "increment", 3),
                Write(STARTED.name, "set", True),
            ),
            messages=(Message.assistant(None, asked),),
        )
    )


async def test_a_fresh_run_is_announced_with_its_settings(driver: Driver) -> None:
    assert await driver.serve("repair", RepairTrigger()) == RepairComplete(repairs_made=0)

    assert driver.happened(RunStarted) == [
        RunStarted(task_preview="x" * 100, stop_policy="interactive", max_turns=25)
    ]
    assert driver.value(STARTED) is True


async def test_a_run_is_announced_once(driver: Driver) -> None:
    for signal in (RepairTrigger(), RepairTrigger(), RepairTrigger(resumed=True)):
        await driver.serve("repair", signal)
    assert len(driver.happened(RunStarted)) == 1


async def test_a_run_that_died_before_it_was_announced_starts(driver: Driver) -> None:
    await driver.serve("repair", RepairTrigger(resumed=True))
    assert len(driver.happened(RunStarted)) == 1
    assert driver.happened(RunResumed) == []


async def test_a_resumed_run_says_in_which_turn_it_goes_on(driver: Driver) -> None:
    left_open(driver)
    await driver.serve("repair", RepairTrigger(resumed=True))
    assert driver.happened(RunResumed) == [RunResumed(turn=3)]


async def test_an_open_call_gets_the_result_that_its_outcome_is_unknown(driver: Driver) -> None:
    left_open(driver, ("a", False))

    answer = await driver.serve("repair", RepairTrigger(resumed=True))

    assert answer == RepairComplete(repairs_made=1)
    (result,) = driver.results()
    assert (result.tool_call_id, result.text, result.is_error) == ("a", UNKNOWN_OUTCOME, True)
    assert driver.happened(Repaired) == [
        Repaired(kind="dangling_tool_call", call_id="a", tool_name="tool", turn=3)
    ]
    assert driver.value(REPAIRS) == 1
    assert driver.value(REQUEST_TOKENS) == result.tokens
    assert driver.value(OPEN_CALLS) == ()
    driver.check_log()


async def test_idempotent_calls_stay_open(driver: Driver) -> None:
    left_open(driver, ("a", True), ("b", False), ("c", True))

    await driver.serve("repair", RepairTrigger(resumed=True))

    assert [result.tool_call_id for result in driver.results()] == ["b"]
    assert [call.call_id for call in driver.value(OPEN_CALLS)] == ["a", "c"]


async def test_open_calls_are_closed_whoever_asks(driver: Driver) -> None:
    left_open(driver, ("a", False))
    answer = await driver.serve("repair", CustomSignal(name="critic"))
    assert answer == RepairComplete(repairs_made=1)
    assert driver.happened(RunResumed) == []


async def test_what_an_interrupted_run_left_running_is_ended_before_it_goes_on() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    async def end_processes(run_id: str) -> None:
        runs.append(run_id)
        asked.set()
        await ended.wait()

    driver = Driver(SimpleAgent(RecordingModel([])), "task", end_processes=end_processes)
    left_open(driver, ("a", False))
    answer = asyncio.ensure_future(driver.serve("repair", RepairTrigger(resumed=True)))
    await asked.wait()
    assert (runs, driver.results(), answer.done()) == (["run"], [], False)

    ended.set()
    assert await answer == RepairComplete(repairs_made=1)


async def test_nothing_is_looked_for_where_nothing_was_interrupted() -> None:
    ended: list[str] = []

    async def end_processes(run_id: str) -> None:
        ended.append(run_id)

    driver = Driver(SimpleAgent(RecordingModel([])), "task", end_processes=end_processes)
    for signal in (RepairTrigger(), RepairTrigger(), CustomSignal(name="critic")):
        await driver.serve("repair", signal)
    assert ended == []


async def test_a_second_repair_finds_nothing_to_do(driver: Driver) -> None:
    left_open(driver, ("a", False), ("b", True))
    await driver.serve("repair", RepairTrigger(resumed=True))
    answer = await driver.serve("repair", RepairTrigger(resumed=True))
    assert answer == RepairComplete(repairs_made=0)
    assert len(driver.results()) == 1
