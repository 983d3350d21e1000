"""What became of a call is said with its result, in a word of a fixed list."""

import asyncio
from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.signals import CompactionComplete
from harness_actors.testing.scripted import Reply
from harness_actors.tools import ask_user
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)


def a_driver(reply: Reply, *tools: Any, **settings: Any) -> Driver:
    model = RecordingModel([reply, Reply.text("hm")])
    return Driver(SimpleAgent(model, tools), **settings)


async def results_in(driver: Driver) -> list[Message]:
    """The results of one round, as the change that adds them has them."""
    await driver.serve("agent_turn", CompactionComplete())
    added = [message for delta in driver.deltas for message in delta.messages]
    results = [message for message in added if message.role == "tool"]
    assert [m.disposition for m in driver.results()] == [m.disposition for m in results]
    return results


async def results_of(reply: Reply, *tools: Any, **settings: Any) -> list[Message]:
    return await results_in(a_driver(reply, *tools, **settings))


async def hang(_arguments: str, _context: ToolContext) -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize(
    ("reply", "disposition"),
    [
        (calls(("a", "write")), "done"),
        (calls(("a", "fail")), "failed"),
        (calls(("a", "crash")), "failed"),
        (calls(("a", "nothing")), "failed"),
        (calls(("a", "hang")), "timed_out"),
        (calls(("a", "unknown")), "refused"),
    ],
)
async def test_a_call_says_what_became_of_it(reply: Reply, disposition: str) -> None:
    tools = [
        a_tool(),
        a_tool("fail", ToolError("no such order")),
        a_tool("crash", ValueError("bad id")),
        a_tool("nothing", None),
        SimpleTool("hang", hang, timeout_s=0.01),
    ]

    (result,) = await results_of(reply, *tools)

    assert result.disposition == disposition
    assert not result.facts.limit, "no bound of the run had a part in it"


async def test_a_call_that_the_time_of_its_run_stops_says_so_and_so_do_those_behind_it() -> None:
    reply = calls(("a", "write"), ("b", "hang"), ("c", "write"))

    async def hang_until_time_is_up(arguments: str, context: ToolContext) -> str:
        try:
            return await hang(arguments, context)
        finally:
            driver.clock.advance(1)

    slow = SimpleTool("hang", hang_until_time_is_up)
    driver = a_driver(reply, a_tool(), slow, limits={"working_s": 0.05})

    results = await results_in(driver)

    assert [(result.disposition, result.facts.limit) for result in results] == [
        ("done", ""),
        ("timed_out", "working_time"),
        ("refused", "working_time"),
    ]


async def test_a_call_too_many_is_refused_by_the_bound_that_it_names() -> None:
    reply = calls(("a", "write"), ("b", "write"))

    results = await results_of(reply, a_tool(), limits={"tool_calls": 1})

    assert [(result.disposition, result.facts.limit) for result in results] == [
        ("done", ""),
        ("refused", "tool_calls"),
    ]


async def test_a_question_that_nobody_is_there_for_is_denied() -> None:
    reply = Reply.calls([("ask_user", {"question": "Which?"}), ("ask_user", {"question": " "})])

    results = await results_of(reply, ask_user, on_question="deny")

    assert [result.disposition for result in results] == ["denied", "failed"]


async def test_a_completion_that_does_not_count_is_refused() -> None:
    failed = Reply.calls([("fail", {}), ("work_complete", {"summary": "so"})])

    results = await results_of(failed, a_tool("fail", ToolError("no")))

    assert [result.disposition for result in results] == ["failed", "refused"]


async def test_an_answer_that_reached_its_length_limit_says_so_with_its_message() -> None:
    model = RecordingModel([calls(("a", "write", '{"te')), finishes()], finish_reason="length")
    driver = Driver(SimpleAgent(model, [a_tool()]))

    await driver.serve("agent_turn", CompactionComplete())

    added = [message for delta in driver.deltas for message in delta.messages]
    answers = [message for message in added if message.role == "assistant"]
    assert [answer.facts.finish_reason for answer in answers] == ["length", "length"]
    assert [m.disposition for m in added if m.role == "tool"] == ["refused", "done"]
    assert not any(message.facts for message in driver.state.log)
