"""Calls that ask the user: put together, waited for, answered, and refused."""

from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ToolContext
from harness_actors.signals import RunEnd, Waiting
from harness_actors.state import OPEN_CALLS, QUESTIONS, TURN_COUNT, USAGE, Questions
from harness_actors.testing.scripted import Reply
from harness_actors.tools import ask_user
from harness_actors.turn.questions import NOBODY_THERE, NOT_BEGUN
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    _inline,
    a_tool,
    finishes,
)


def driver_of(*replies: Reply, **settings: Any) -> tuple[Driver, dict[str, SimpleTool]]:
    tools = {"read": a_tool("read", idempotent=True), "write": a_tool("write")}
    agent = SimpleAgent(RecordingModel([*replies, finishes()]), [*tools.values(), ask_user])
    return Driver(agent, **settings), tools


def ask(question: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "ask_user", {"question": question, **more}


def texts(driver: Driver) -> list[str]:
    return [message.text for message in driver.results()]


def asked(driver: Driver) -> Questions:
    found = driver.value(QUESTIONS)
    assert isinstance(found, Questions)
    return found


async def test_all_questions_of_a_message_are_put_at_once_and_in_its_order() -> None:
    message = Reply.calls(
        [ask("Which?", options=["a", "b"], why="to begin"), ("read", {}), ask(" How many? ")]
    )
    driver, tools = driver_of(message)

    assert await driver.run() == Waiting()

    first, second = asked(driver).asked
    assert (first.id, first.text, first.options, first.why) == (
        "q1", "Which?", ("a", "b"), "to begin",
    )  # fmt: skip
    assert (second.id, second.text, second.options, second.why) == ("q2", "How many?", (), "")
    assert tools["read"].calls == [], "it stands after the first question"
    assert driver.results() == []


@pytest.mark.parametrize("before", ["read", "write"])
async def test_what_stands_before_the_first_question_is_done_and_the_rest_waits(
    before: str,
) -> None:
    message = Reply.calls([(before, {}), ask("?"), ("write", {}), ("read", {})])
    driver, tools = driver_of(message)

    assert await driver.run() == Waiting()

    assert len(tools[before].calls) == 1
    assert texts(driver) == ["done"]
    held = [call.call_id for call in driver.value(OPEN_CALLS)]
    assert held == list(asked(driver).held)
    assert len(held) == 3

    driver.take_answers(lambda _question: "go on")
    driver.hop = ("agent_turn", driver.hop[1])
    end = await driver.run(resumed=True)

    assert isinstance(end, RunEnd)
    assert texts(driver)[:4] == ["done", "go on", "done", "done"]
    driver.check_log()
    assert driver.value(QUESTIONS) is None
    assert driver.value(OPEN_CALLS) == ()
    assert driver.value(TURN_COUNT) == 1, "it is the same turn"


async def test_a_message_may_complete_the_run_when_its_questions_are_answered() -> None:
    driver, _ = driver_of(Reply.calls([ask("May I?"), ("work_complete", {"summary": "asked"})]))
    driver.answer = lambda _question: "yes"
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.output_text == "asked"
    assert driver.value(USAGE).model_calls == 1


async def test_numbers_of_questions_go_on_through_the_run() -> None:
    driver, _ = driver_of(Reply.calls([ask("a"), ask("b")]), Reply.calls([ask("c")]))
    seen: list[str] = []

    def answer(question: str) -> str:
        seen.extend(one.id for one in asked(driver).asked if one.text == question)
        return question.upper()

    driver.answer = answer
    await driver.run()
    assert seen == ["q1", "q2", "q3"]
    assert texts(driver)[:3] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"question": " \n"}, "question is empty; say what you want to know"),
        ({"question": "x" * 10_001}, "question has more than 10000 characters; be brief"),
        ({"question": "?", "options": [f"o{n}" for n in range(100)]}, "more than 20 options"),
        ({"question": "?", "options": ["a", "a"]}, "options must be texts that differ"),
        ({"question": "?", "options": ["a", " "]}, "options must be texts that differ"),
        ({}, "question"),
        ({"question": 3}, "question"),
        ({"question": "?", "colour": "red"}, "colour"),
    ],
)
async def test_what_nobody_can_be_asked_is_told_to_the_model(
    arguments: dict[str, Any], told: str
) -> None:
    driver, _ = driver_of(Reply.calls([("ask_user", arguments)]))
    end = await driver.run()
    assert isinstance(end, RunEnd)
    (result, _) = driver.results()
    assert result.is_error
    assert told in result.text
    assert driver.value(QUESTIONS) is None


async def test_a_wrong_question_among_others_is_told_when_its_turn_comes() -> None:
    driver, _ = driver_of(Reply.calls([ask("a"), ask(""), ask("b")]))
    assert await driver.run() == Waiting()
    assert [one.text for one in asked(driver).asked] == ["a", "b"]
    driver.answer = lambda question: question.upper()
    driver.take_answers(driver.answer)
    driver.hop = ("agent_turn", driver.hop[1])
    await driver.run(resumed=True)
    a, wrong, b, *_ = driver.results()
    assert (a.text, b.text, wrong.is_error) == ("A", "B", True)


async def test_where_nobody_is_to_be_asked_the_model_is_told_so_and_goes_on() -> None:
    driver, tools = driver_of(
        Reply.calls([("write", {}), ask("?"), ("write", {})]), on_question="deny"
    )
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.status == "done"
    assert texts(driver)[:3] == ["done", NOBODY_THERE, "done"]
    assert driver.results()[1].is_error
    assert len(tools["write"].calls) == 2


async def test_where_asking_is_a_failure_the_run_ends_and_says_what_was_asked() -> None:
    driver, tools = driver_of(Reply.calls([ask("Which?"), ("write", {})]), on_question="fail")
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert "the model asked its user ('Which?'), and on_question is 'fail'" in end.reason.message
    assert tools["write"].calls == []


@pytest.mark.parametrize("before", [[], [("write", {})], [("read", {})]])
async def test_a_turn_that_fails_for_asking_leaves_no_call_open_to_what_comes_behind_it(
    before: list[tuple[str, dict[str, Any]]],
) -> None:
    driver, _ = driver_of(
        Reply.calls([*before, ask("Which?"), ("write", {}), ask("")]), on_question="fail"
    )
    await driver.run()
    assert driver.state.log.open_calls() == ()
    assert texts(driver)[len(before) :] == [NOT_BEGUN] * 3
    assert driver.value(OPEN_CALLS) == ()
    driver.check_log()


async def test_an_agent_without_the_tool_has_no_entries_of_it() -> None:
    script = [Reply.call("write"), finishes()]
    driver = Driver(SimpleAgent(RecordingModel(script), [a_tool("write")]))
    await driver.run()
    assert not [key for key in driver.state.values if "question" in key or "answer" in key]


async def test_the_tool_itself_asks_nobody() -> None:
    context = ToolContext(run_id="run", call_id="c", workspace=None, in_thread=_inline)
    with pytest.raises(NotImplementedError, match="ask_user is answered by the user of a run"):
        await ask_user.run("{}", context)
    with pytest.raises(ToolError):
        ask_user.question(ToolCall("c", "ask_user", "no json"))


async def test_an_answer_of_many_characters_reaches_the_model_whole() -> None:
    driver, _ = driver_of(Reply.calls([ask("?")]))
    driver.answer = lambda _question: "x" * 100_000
    await driver.run()
    assert texts(driver)[0] == "x" * 100_000
    assert isinstance(driver.state.log[0], Message)
