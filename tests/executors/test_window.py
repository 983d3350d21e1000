"""A run whose conversation outgrows its window goes on, and its requests fit."""

from typing import Any

import pytest

from harness_actors.conversation import repaired
from harness_actors.errors import ContextOverflowError
from harness_actors.events import ContextCompacted
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.signals import RunEnd
from harness_actors.state import PRESSURE, REQUEST_TOKENS
from harness_actors.testing import Reply
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, a_tool, calls, finishes

WINDOW = 4_000
LONG = "word " * 300


class Steps:
    """Works for so many rounds, and reads one message back once it is told how."""

    def __init__(self, rounds: int, reads: str = "") -> None:
        self.rounds = rounds
        self.reads = reads
        self.asked = 0

    def __call__(self, conversation: Any) -> Reply:
        if self.reads and any("read_artifact" in message.text for message in conversation):
            message_id, self.reads = self.reads, ""
            return calls(("r", "read_artifact", f'{{"id": "{message_id}"}}'))
        self.asked += 1
        if self.asked > self.rounds:
            return finishes()
        return calls((f"c{self.asked}", "look", f'{{"path":"f{self.asked}"}}'))


class Provider(RecordingModel):
    """Refuses what is larger than its window, counted in words."""

    def __init__(self, rounds: int, window: int, reads: str = "") -> None:
        super().__init__(Steps(rounds, reads))
        self.window = window
        self.refused = 0

    async def complete(self, request: ModelRequest) -> ModelResponse:
        if words_of(request) > self.window:
            self.refused += 1
            raise ContextOverflowError(self.name, "too many tokens", 400)
        return await super().complete(request)


def refusals(driver: Driver) -> int:
    assert isinstance(driver.model, Provider)
    return driver.model.refused


def words_of(request: ModelRequest) -> int:
    return sum(len(message.text.split()) for message in request.messages)


def a_run(
    rounds: int, *, real: int = WINDOW, reads: str = "", task: Any = "do the task", **more: Any
) -> Driver:
    model = Provider(rounds, real, reads)
    tools = [a_tool("look", LONG, idempotent=True, volatile=True)]
    settings = {"max_input_tokens": WINDOW, "max_rounds_per_turn": 1000, "stall": None} | more
    return Driver(SimpleAgent(model, tools), task, **settings)


async def test_a_run_of_many_windows_goes_on_in_one_turn() -> None:
    driver = a_run(60)
    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("done", "completed")
    assert refusals(driver) == 0
    assert len(driver.happened(ContextCompacted)) > 2
    assert len(driver.results()) == 61
    driver.check_log()
    assert driver.state.plan is not None
    assert driver.state.plan.version == len(driver.happened(ContextCompacted))
    last = driver.model.requests[-1].messages
    assert len(last) < len(driver.state.log) / 2
    assert "do the task" in [message.text for message in last]
    # The first of its kind was not offered before somebody needed it.
    names = [[spec.name for spec in one.tools.specs] for one in driver.model.requests]
    assert "read_artifact" not in names[0]
    assert "read_artifact" in names[-1]


async def test_what_is_shown_is_what_providers_accept() -> None:
    driver = a_run(40)
    await driver.run()
    for request in driver.model.requests:
        assert repaired(request.messages)[1] == 0


async def test_a_conversation_that_fits_is_sent_as_it_is() -> None:
    with_it, without = a_run(5), a_run(5, compaction=None)
    for driver in (with_it, without):
        await driver.run()
    sent = [[m.encoded for r in d.model.requests for m in r.messages] for d in (with_it, without)]
    assert sent[0] == sent[1]
    assert with_it.state.values == without.state.values
    assert [r.tools.encoded for r in with_it.model.requests] == [
        r.tools.encoded for r in without.model.requests
    ]


async def test_a_smaller_window_than_was_said_is_found_out() -> None:
    driver = a_run(40, real=2_500)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert refusals(driver) == 1
    pressure = driver.value(PRESSURE)
    assert pressure.window_tokens < WINDOW
    assert not pressure.refused


async def test_a_run_ends_where_even_what_is_left_is_refused() -> None:
    driver = a_run(3, real=1)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "context")
    # Nothing could be gained, and so it was not asked again.
    assert refusals(driver) == 1
    assert "the largest message" in end.reason.message


async def test_without_compaction_the_provider_says_when_it_is_over() -> None:
    driver = a_run(40, compaction=None)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "context")


async def test_a_task_larger_than_the_window_is_shown_in_part() -> None:
    driver = a_run(2, task="begin " + "word " * 9_000 + "end")
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    shown = next(m.text for m in driver.model.requests[0].messages if m.role == "user")
    assert shown.startswith("begin ")
    assert shown.endswith(" end")
    assert "read_artifact" in shown


async def test_an_old_result_is_read_back_from_the_log() -> None:
    driver = a_run(30, reads="m2")
    await driver.run()
    (result,) = (message for message in driver.results() if message.tool_call_id == "r")
    assert result.text.startswith("[Characters 0 to")
    assert LONG.strip() in result.text


async def test_a_message_that_is_not_there_is_told() -> None:
    driver = a_run(30, reads="m99999")
    await driver.run()
    (result,) = (message for message in driver.results() if message.tool_call_id == "r")
    assert result.is_error
    assert "There is no message 'm99999'" in result.text


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_a_death_at_any_moment_costs_nothing(steps: int) -> None:
    driver = a_run(20)
    driver.model.before = driver.step
    end = await driver.run_through_crashes(20 + steps, 15)
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    driver.check_log()
    assert refusals(driver) == 0
    plans = [delta.plan.version for delta in driver.deltas if delta.plan is not None]
    assert plans == list(range(1, len(plans) + 1))


async def test_the_next_run_of_a_conversation_begins_with_its_plan() -> None:
    first = a_run(40)
    await first.run()
    second = a_run(3)
    second.state.log, second.state.plan = first.state.log, first.state.plan
    assert first.state.plan is not None
    version = first.state.plan.version
    end = await second.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert refusals(second) == 0
    assert second.state.plan is not None
    assert second.state.plan.version <= version + 1
    assert second.value(REQUEST_TOKENS) < WINDOW


async def test_a_window_smaller_than_prompt_and_tools_is_said() -> None:
    driver = a_run(3, max_input_tokens=3)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "context")
    assert "prompt and tools alone have" in end.reason.message
    assert driver.model.requests == []
