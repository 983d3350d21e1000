"""`@tool(retries=…)`: what is tried again, how often, and what is said of it."""

import copy
import pickle
import re
from dataclasses import replace
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ConfigError, ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import ToolContext, ToolOutput
from harness_actors.tools import FunctionTool, tool
from harness_actors.tools.options import ToolOptions
from harness_actors.tools.retrying import FIRST_PAUSE_S, LONGEST_PAUSE_S, pause_before
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call


class PausingClock:
    """One whose pauses take no time, and are counted."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def now(self) -> float:
        return sum(self.pauses)

    monotonic = now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def clock() -> PausingClock:
    return PausingClock()


@pytest.fixture
def context(context: ToolContext, clock: PausingClock) -> ToolContext:
    return replace(context, clock=clock)


def failing(times: int, error: Exception, **options: Any) -> FunctionTool[..., Any]:
    """A tool that fails so often, and then says how often it was called."""
    tries = 0

    def ask() -> int:
        nonlocal tries
        tries += 1
        if tries <= times:
            raise copy.copy(error)
        return tries

    return tool(effect="read_only", **options)(ask)


async def test_a_failure_that_may_pass_is_tried_again(
    context: ToolContext, clock: PausingClock
) -> None:
    output = await failing(2, ConnectionError("refused"), retries=2).run("", context)

    assert isinstance(output, ToolOutput)
    assert (output, output.tries) == ("3", 3)
    assert len(clock.pauses) == 2


async def test_the_first_success_is_a_plain_text(context: ToolContext) -> None:
    assert type(await failing(0, ConnectionError(), retries=2).run("", context)) is str


async def test_after_the_last_try_the_model_is_told_how_many_there_were(
    context: ToolContext,
) -> None:
    function = failing(9, ConnectionError("refused"), retries=2)
    planned = PlannedCall(call=ToolCall("c", "ask", "{}"), tool=function)

    outcome = await run_call(planned, context, Due(None))

    assert outcome.text == "ConnectionError: refused\nIt was tried 3 times."
    assert outcome.failure == "failed"


@pytest.mark.parametrize("error", [ToolError("closed"), ValueError("no such order")])
async def test_another_failure_is_not_tried_again(
    error: Exception, context: ToolContext, clock: PausingClock
) -> None:
    with pytest.raises(type(error)):
        await failing(1, error, retries=5).run("", context)
    assert clock.pauses == []


async def test_what_is_worth_another_try_can_be_said(context: ToolContext) -> None:
    function = failing(1, KeyError("busy"), retries=1, retry_on=[LookupError])

    assert await function.run("", context) == "2"


async def test_arguments_against_the_schema_are_not_tried_again(
    context: ToolContext, clock: PausingClock
) -> None:
    with pytest.raises(ToolError, match="no such argument"):
        await failing(0, ConnectionError(), retries=3).run('{"to": 1}', context)
    assert clock.pauses == []


async def test_its_deadline_is_that_of_all_tries_together(context: ToolContext) -> None:
    slow = failing(10, ConnectionError("refused"), retries=10, timeout_s=0.3)
    planned = PlannedCall(call=ToolCall("c", "ask", "{}"), tool=slow)

    outcome = await run_call(planned, replace(context, clock=None), Due(None))

    assert outcome.failure == "timed_out"
    assert re.search(r"0\.3 s\. It was tried [12] times; .* was ConnectionError\.$", outcome.text)


async def test_whoever_reads_along_is_told(context: ToolContext) -> None:
    told: list[str] = []

    def tell(text: str) -> bool:
        told.append(text)
        return True

    await failing(1, TimeoutError(), retries=1).run("", replace(context, tell=tell))

    assert told == ["try 1 of 2: TimeoutError"]


@given(retry=st.integers(1, 10), call=st.text())
def test_pauses_grow_within_bounds_and_are_the_same_for_the_same_call(
    retry: int, call: str
) -> None:
    longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (retry - 1))

    assert longest_s / 2 <= pause_before(retry, call) <= longest_s
    assert pause_before(retry, call) == pause_before(retry, call)


def test_calls_that_failed_together_do_not_come_together_again() -> None:
    assert len({pause_before(1, f"run/{call}") for call in range(100)}) > 90


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retries": 1}, "only an idempotent tool may be tried again"),
        ({"retries": 1, "effect": "network"}, "only an idempotent tool"),
        ({"retries": -1, "idempotent": True}, "0 to 10, not -1"),
        ({"retries": 11, "idempotent": True}, "0 to 10, not 11"),
        ({"retries": 1.5, "idempotent": True}, "a whole number"),
        ({"retries": True, "idempotent": True}, "a whole number"),
        ({"retry_on": KeyError}, "a list of exceptions"),
        ({"retry_on": [KeyError, "OSError"]}, "a list of exceptions"),
        ({"retry_on": [KeyboardInterrupt]}, "a list of exceptions"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tool(**options)(print_nothing)


def print_nothing() -> None: ...


def test_options_that_were_stored_before_there_were_retries_have_their_defaults() -> None:
    options = ToolOptions.__new__(ToolOptions)
    options.__setstate__(["look", "read_only", True, (), 5.0])  # type: ignore[attr-defined]

    assert options == ToolOptions(name="look", effect="read_only", idempotent=True, timeout_s=5.0)
    assert pickle.loads(cloudpickle.dumps(options)) == options
