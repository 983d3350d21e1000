import asyncio
import os
import signal
from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.signals import CompactionComplete
from harness_actors.state import USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.turn.texts import ERROR_CHARS, RESULT_CHARS
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)


class Panic(BaseException):
    """What a library in Rust raises: no `Exception`."""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("broken too")


async def results_of(
    *tools: SimpleTool, reply: Reply | None = None, **facts: Any
) -> list[tuple[str, bool]]:
    """Text and failure of the results of one round that calls each tool once."""
    reply = reply or calls(*((tool.name, tool.name) for tool in tools))
    model = RecordingModel([reply, Reply.text("hm")], **facts)
    driver = Driver(SimpleAgent(model, tools))
    await driver.serve("agent_turn", CompactionComplete())
    driver.check_log()
    sent = [m for m in model.requests[1].messages if m.role == "tool"]
    assert [m.encoded for m in sent] == [m.encoded for m in driver.results()]
    return [(result.text, result.is_error) for result in driver.results()]


async def test_calls_that_may_write_run_one_after_the_other_in_the_order_of_their_message() -> None:
    running: list[str] = []

    def slow(name: str) -> SimpleTool:
        async def act(_arguments: str, _context: ToolContext) -> str:
            running.append(f"{name} starts")
            await asyncio.sleep(0)
            running.append(f"{name} ends")
            return name

        return SimpleTool(name, act)

    assert await results_of(slow("b"), slow("a")) == [("b", False), ("a", False)]
    assert running == ["b starts", "b ends", "a starts", "a ends"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("no such order"), "no such order"),
        (ValueError("bad id"), "ValueError: bad id"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt("its own"), "KeyboardInterrupt: its own"),
        (asyncio.CancelledError("its own"), "CancelledError: its own"),
        (GeneratorExit("its own"), "GeneratorExit: its own"),
        (Panic("rust"), "Panic: rust"),
        (UnspeakableError(), "UnspeakableError: (its text cannot be read: RuntimeError)"),
    ],
)
async def test_whatever_a_tool_raises_is_an_answer_to_the_model(
    error: BaseException, text: str
) -> None:
    assert await results_of(a_tool(answer=error)) == [(text, True)]


async def test_a_tool_that_fails_does_not_stop_those_after_it() -> None:
    assert await results_of(a_tool("a", ValueError("no")), a_tool("b")) == [
        ("ValueError: no", True),
        ("done", False),
    ]


async def test_the_text_of_an_error_is_bounded() -> None:
    ((text, _),) = await results_of(a_tool(answer=ValueError("x" * 1_000_000)))
    assert len(text) < ERROR_CHARS + 100


async def test_a_long_result_keeps_its_head_and_its_tail() -> None:
    ((text, failed),) = await results_of(a_tool(answer="head" + "x" * 200_000 + "tail"))
    assert not failed
    assert text.startswith("headxxx")
    assert text.endswith("xxxtail")
    assert "100008 of 200008 characters left out" in text
    assert len(text) < RESULT_CHARS + 100


async def test_what_is_not_valid_unicode_is_replaced() -> None:
    assert await results_of(a_tool(answer="a\udcffb")) == [("a?b", False)]


@pytest.mark.parametrize(
    ("value", "kind"), [(b"x", "bytes"), (None, "NoneType"), (float("nan"), "float")]
)
async def test_a_tool_that_returns_no_text_is_answered_as_a_failure(value: Any, kind: str) -> None:
    assert await results_of(a_tool(answer=value)) == [(f"'write' returned {kind}, not text", True)]


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    ((text, failed),) = await results_of(a_tool("b"), reply=calls(("x", "refund")))
    assert failed
    assert text == "There is no tool 'refund'. Tools: b, work_complete."


async def test_a_tool_past_its_own_time_is_stopped_and_the_turn_goes_on() -> None:
    stopped = asyncio.Event()

    async def hang(_arguments: str, _context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    slow = SimpleTool("slow", hang, timeout_s=0.01)
    async with asyncio.timeout(10):
        results = await results_of(slow, a_tool("b"))
    assert results == [
        ("'slow' was stopped: it ran past its limit of 0.01 s.", True),
        ("done", False),
    ]
    assert stopped.is_set()


async def test_the_model_is_told_what_a_stopped_tool_left_behind() -> None:
    async def leaves(_arguments: str, _context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            cancelled.add_note("A process goes on.")
            raise
        return "never"

    assert await results_of(SimpleTool("slow", leaves, timeout_s=0.01)) == [
        ("'slow' was stopped: it ran past its limit of 0.01 s. A process goes on.", True)
    ]


def test_ctrl_c_while_a_tool_is_being_stopped_is_the_users() -> None:
    async def interrupted(_arguments: str, _context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
        return "never"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()
    turn = loop.create_task(results_of(SimpleTool("slow", interrupted, timeout_s=0.01)))
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(turn)
        # Not an answer to the model: the round goes on to nobody.
        turn.cancel()
        with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
            loop.run_until_complete(turn)
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)


async def test_calls_that_nobody_makes_are_not_put_down_as_being_made() -> None:
    model = RecordingModel([calls(("a", "unknown"), ("b", "unknown")), finishes()])
    driver = Driver(SimpleAgent(model, [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    assert driver.tool_notices == 0
    assert len(driver.deltas) == 3, "begin, round and end: no record goes before them"


async def test_arguments_cut_by_the_length_limit_are_not_used() -> None:
    write = a_tool()
    reply = calls(("a", "write", '{"text": "whole"}'), ("b", "write", '{"text": "cu'))
    whole, cut = await results_of(write, reply=reply, finish_reason="length")
    assert whole == ("done", False)
    assert cut[1]
    assert "length limit" in cut[0]
    assert write.calls == ['{"text": "whole"}']


async def test_arguments_that_are_no_json_otherwise_are_left_to_the_tool() -> None:
    write = a_tool()
    await results_of(write, reply=calls(("a", "write", "not json")))
    assert write.calls == ["not json"]


async def test_ids_given_twice_or_not_at_all_are_made_unique() -> None:
    reply = calls(("same", "write"), ("same", "write"), ("", "write"))
    driver = Driver(SimpleAgent(RecordingModel([reply, Reply.text("x")]), [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    assert [result.tool_call_id for result in driver.results()] == ["same", "same#2", "call_3"]
    driver.check_log()


async def test_an_id_of_an_earlier_message_may_come_again() -> None:
    script = [calls(("same", "write")), calls(("same", "write")), Reply.text("x")]
    driver = Driver(SimpleAgent(RecordingModel(script), [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    assert [result.tool_call_id for result in driver.results()] == ["same", "same"]
    driver.check_log()


@pytest.mark.parametrize(
    ("given", "sent"), [("", "unnamed"), ("a b.c", "a_b_c"), ("x" * 80, "x" * 64)]
)
async def test_names_that_providers_refuse_are_brought_into_form(given: str, sent: str) -> None:
    reply = calls(("a", given))
    driver = Driver(SimpleAgent(RecordingModel([reply, Reply.text("x")])))
    await driver.serve("agent_turn", CompactionComplete())
    assert driver.state.log[1].tool_calls[0].name == sent
    assert driver.results()[0].is_error


async def test_a_models_words_that_are_not_valid_unicode_are_replaced() -> None:
    driver = Driver(SimpleAgent(RecordingModel([Reply.text("a\udcffb")])))
    await driver.serve("agent_turn", CompactionComplete())
    assert driver.state.log[1].text == "a?b"


async def test_only_calls_that_were_made_count_as_used() -> None:
    reply = calls(("a", "write"), ("b", "unknown"), ("c", "write"))
    driver = Driver(SimpleAgent(RecordingModel([reply, Reply.text("x")]), [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    assert driver.value(USAGE).tool_calls == 2


async def test_a_turn_that_is_cancelled_stops_its_tool_and_is_over() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def hang(_arguments: str, _context: ToolContext) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    script = [calls(("a", "hang"), ("b", "hang"))]
    tool = SimpleTool("hang", hang, idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel(script), [tool]), max_parallel_calls=1)
    context = driver.open_context("agent_turn")
    executor = driver.executors["agent_turn"]
    turn = asyncio.ensure_future(executor.handle(CompactionComplete(), context))
    await started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert stopped.is_set()
    assert len(tool.calls) == 1
    assert context.log[-1].role == "assistant"
