"""Answers that no run can take, of whichever model."""

from dataclasses import replace
from typing import Any

import pytest

from harness_actors.config import CALLS_PER_MESSAGE, HarnessConfig, Limits
from harness_actors.messages import ToolCall
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage
from harness_actors.signals import RunEnd
from harness_actors.state import USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.turn.acceptance import LARGE_CALLS, LARGE_CHARS, fault_of, is_large
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, a_tool, calls, finishes


def many(count: int) -> Reply:
    return calls(*(("same", "read") for _ in range(count)))


@pytest.mark.parametrize(
    ("count", "limits"),
    [(CALLS_PER_MESSAGE + 1, {}), (4, {"calls_per_message": 3})],
)
async def test_more_calls_than_a_message_may_have_fail_the_run(
    count: int, limits: dict[str, int]
) -> None:
    tool = a_tool("read", idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel([many(count)]), [tool]), limits=limits)

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("failed", "model_error")
    assert f"asks for {count} tool calls at once; limits.calls_per_message" in end.reason.message
    assert tool.calls == []


async def test_more_may_be_allowed_and_each_has_an_id_of_its_own() -> None:
    tool = replace(a_tool("read", idempotent=True), volatile=True)
    model = RecordingModel([many(2000), finishes()])
    driver = Driver(SimpleAgent(model, [tool]), limits={"calls_per_message": 2000})

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert end.status == "done", end.reason
    assert len(tool.calls) == 2000
    driver.check_log()


class Says(RecordingModel):
    """A model of a user's own, which answers whatever it likes."""

    def __init__(self, **facts: Any) -> None:
        super().__init__([])
        self._given = {"text": "hello", **facts}

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return ModelResponse(**self._given)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": int(1e308)},
        {"input_tokens": 1e308},
        {"output_tokens": 1 << 64},
        {"output_tokens": -1},
        {"cached_tokens": float("nan")},
        {"cost_usd": float("nan")},
        {"cost_usd": float("inf")},
        {"cost_usd": -0.5},
        {"cost_usd": 1e308},
    ],
)
async def test_numbers_that_no_call_has_fail_the_run(usage: dict[str, Any]) -> None:
    driver = Driver(SimpleAgent(Says(usage=Usage(model_calls=1, **usage))), completion="answer")

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("failed", "model_error")
    assert f"numbers that no call has: {next(iter(usage))} is " in end.reason.message
    assert len(end.reason.message) < 300
    assert driver.value(USAGE) == Usage(model_calls=1)


@pytest.mark.parametrize("waited_s", [float("nan"), float("inf"), -1.0])
def test_a_wait_is_a_number_too(waited_s: float) -> None:
    assert "waited_s is" in fault_of(ModelResponse(text="x", waited_s=waited_s), Limits())


def test_texts_are_bounded() -> None:
    big = "x" * (1024 * 1024)
    call = ToolCall("a", "write_file", big)

    assert not fault_of(ModelResponse(text=big, tool_calls=(call,)), Limits())
    longer = ToolCall("a", "write_file", big + "x")
    assert "arguments of a call" in fault_of(ModelResponse(text="", tool_calls=(longer,)), Limits())
    assert "8,388,609 characters" in fault_of(ModelResponse(text=big * 8 + "x"), Limits())
    names = (ToolCall(big, big, big),) * 3
    assert "characters" in fault_of(ModelResponse(text=None, tool_calls=names), Limits())


def test_only_what_is_large_is_told_of() -> None:
    call = ToolCall("a", "f", "{}")
    assert not is_large(ModelResponse(text="x" * 1000, tool_calls=(call,) * LARGE_CALLS))
    assert is_large(ModelResponse(text="x", tool_calls=(call,) * (LARGE_CALLS + 1)))
    assert is_large(ModelResponse(text="x" * (LARGE_CHARS + 1)))


@pytest.mark.parametrize(("count", "notices"), [(1, 0), (LARGE_CALLS + 1, 1)])
async def test_a_large_answer_is_told_of_before_it_is_taken_in(count: int, notices: int) -> None:
    # Of no tool that there is, so that nothing runs which would be told of, too.
    driver = Driver(SimpleAgent(RecordingModel([many(count), finishes()])))

    await driver.run()

    assert driver.tool_notices == notices


def test_the_bound_is_told_in_the_journal_where_it_is_another_one() -> None:
    plain = HarnessConfig().as_mapping()
    more = HarnessConfig(limits=Limits(calls_per_message=9))

    assert "calls_per_message" not in plain["limits"]
    assert HarnessConfig.from_mapping(plain) == HarnessConfig()
    assert HarnessConfig.from_mapping(more.as_mapping()) == more
