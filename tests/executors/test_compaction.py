import pytest

from harness_actors.events import ContextPressure
from harness_actors.messages import Message
from harness_actors.signals import CompactionComplete, CustomSignal, RepairComplete
from harness_actors.state import REQUEST_TOKENS, TURN_COUNT, StateDelta, Write
from tests.executors.driver import Driver, RecordingModel, SimpleAgent


def a_driver(tokens: int, turns: int = 2) -> Driver:
    task = (Message.user("task", tokens=500),)
    driver = Driver(SimpleAgent(RecordingModel([])), task, max_input_tokens=1000)
    writes = (
        Write(REQUEST_TOKENS.name, "increment", tokens),
        Write(TURN_COUNT.name, "increment", turns),
    )
    driver.state.apply(StateDelta(writes=writes))
    return driver


@pytest.mark.parametrize(("tokens", "needed"), [(799, False), (800, True), (5000, True)])
async def test_pressure_begins_at_four_fifths_of_the_window(tokens: int, needed: bool) -> None:
    driver = a_driver(tokens)

    answer = await driver.serve("compaction", RepairComplete(repairs_made=2))

    assert answer == CompactionComplete(repairs_made=2, tokens=tokens, compaction_needed=needed)
    assert driver.happened(ContextPressure) == [
        ContextPressure(turn=2, tokens=tokens, max_input_tokens=1000)
    ] * int(needed)


async def test_before_the_first_turn_the_task_counts() -> None:
    answer = await a_driver(300, turns=0).serve("compaction", RepairComplete())
    assert answer == CompactionComplete(tokens=800, compaction_needed=True)


async def test_it_measures_after_an_executor_of_the_users() -> None:
    answer = await a_driver(10).serve("compaction", CustomSignal(name="critic"))
    assert answer == CompactionComplete(tokens=10)
