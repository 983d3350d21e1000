"""An agent that asks its user, from Python: answered at once, later, in part, or not."""

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.actors.driver.awaiting import answer_from
from harness_actors.actors.text.hearing import TEXT_WAIT_S
from harness_actors.coordination.waiting import MOST_ANSWER_CHARS
from harness_actors.errors import AnswerError, ConfigError, HarnessError
from harness_actors.events import RunEvent, TextDelta, TextGap
from harness_actors.results import HarnessResult, OpenQuestion
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user
from harness_actors.tools.asking import MOST_OPTIONS, MOST_QUESTION_CHARS
from tests.cli.asking_agents import COLOUR, SIZE, Question, answers_of, asks
from tests.pages import run_python_of, text_of


def a_harness(
    folder: Path, *rounds: Sequence[Question], on_question: Any = None, script: Any = None
) -> AgentHarness:
    agent = ChatAgent(model=ScriptedModel(script or asks(*rounds)), tools=[ask_user])
    return AgentHarness(agent, runtime="local", store=folder / "runs.db", on_question=on_question)


async def slowly(asked: OpenQuestion) -> str:
    await asyncio.sleep(0)
    return {"q1": "red", "q2": "M"}[asked.id]


def at_once(asked: OpenQuestion) -> str:
    return {"q1": "red", "q2": "M"}[asked.id]


class Person:
    """Answers by being called, as an object of a program does."""

    async def __call__(self, asked: OpenQuestion) -> str:
        return await slowly(asked)


@pytest.mark.parametrize("answerer", [slowly, at_once, Person()])
async def test_a_function_answers_and_the_run_goes_on(
    tmp_path: Path, answerer: Callable[[OpenQuestion], Any]
) -> None:
    async with a_harness(tmp_path, [COLOUR, SIZE], on_question=answerer) as harness:
        result = await harness.run("paint")

    assert (result.status, result.output_text) == ("done", "told: red, M")
    assert result.turn_count == 1
    kinds = [told.event.type for told in result.transcript]
    assert (kinds.count("input_awaited"), kinds.count("question_answered")) == (1, 2)


async def test_a_function_that_takes_its_time_holds_nothing_else_up() -> None:
    may_answer = threading.Event()

    def answer(_: OpenQuestion) -> str | None:
        return "red" if may_answer.wait(10) else None

    answering = asyncio.create_task(answer_from(answer, OpenQuestion(id="q1", text="Which?")))
    await asyncio.sleep(0)
    may_answer.set()

    assert await answering == "red"


async def test_whoever_streams_a_run_is_told_of_the_answers_that_it_gives(tmp_path: Path) -> None:
    async with a_harness(tmp_path, [COLOUR, SIZE], on_question=at_once) as harness:
        told = [item async for item in harness.run_stream("paint", text=False)]

    *events, result = told
    assert isinstance(result, HarnessResult)
    assert tuple(events) == result.transcript, "all that happened, and each once"


async def test_what_is_said_after_an_answer_is_streamed_as_what_was_said_before(
    tmp_path: Path,
) -> None:
    script = [
        Reply.call("ask_user", {"question": "Which?"}),
        Reply.call("work_complete", {"summary": "red"}, said="It is red."),
    ]
    harness = a_harness(tmp_path, script=script, on_question=lambda _: "red")
    async with harness, asyncio.timeout(TEXT_WAIT_S):
        told = [item async for item in harness.run_stream("paint")]

    assert "".join(item.text for item in told if isinstance(item, TextDelta)) == "It is red."
    assert not [item for item in told if isinstance(item, TextGap)]


async def test_of_a_run_that_waits_calls_count_that_have_a_result(tmp_path: Path) -> None:
    script = [
        Reply.calls([("ask_user", {"question": "Which?"}), ("ask_user", {"question": "Why?"})]),
        Reply.call("work_complete", {"summary": "red"}),
    ]
    async with a_harness(tmp_path, script=script) as harness:
        first = await harness.run("paint")
        second = await harness.resume(first.run_id, answers={"q1": "red"})
        last = await harness.resume(first.run_id, answers={"q2": "so"})

    assert [result.usage.tool_calls for result in (first, second, last)] == [0, 0, 2]
    assert [result.usage.model_calls for result in (first, second, last)] == [1, 1, 2]


async def test_each_answer_is_on_disk_before_the_next_question_is_put(tmp_path: Path) -> None:
    seen: list[dict[str, str | None]] = []

    def answer(asked: OpenQuestion) -> str:
        seen.append(answers_of(tmp_path / "runs.db", run_id := str(harness.run_id)))
        if asked.id == "q2":
            raise ZeroDivisionError(run_id)
        return "red"

    async with a_harness(tmp_path, [COLOUR, SIZE], on_question=answer) as harness:
        with pytest.raises(ZeroDivisionError):
            await harness.run("paint")

    assert seen == [{"q1": None, "q2": None}, {"q1": "red", "q2": None}]


async def test_what_a_function_leaves_open_is_waited_for(tmp_path: Path) -> None:
    put: list[str] = []

    def answer(asked: OpenQuestion) -> str | None:
        put.append(asked.id)
        return None if asked.id == "q1" else "M"

    async with a_harness(tmp_path, [COLOUR, SIZE], on_question=answer) as harness:
        result = await harness.run("paint")
        assert result.status == "awaiting_input"
        assert result.reason.message == "1 question to answer"
        assert [asked.id for asked in result.questions] == ["q1"]
        assert put == ["q1", "q2"], "each is put once"
        done = await harness.resume(result.run_id, answers={"q1": "blue"})

    assert done.output_text == "told: blue, M"


async def test_a_run_that_another_has_answered_meanwhile_comes_to_what_that_one_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = a_harness(tmp_path)  # in the same cell

    async def answer(_: OpenQuestion) -> str:
        told.append(await other.resume(str(harness.run_id), answers={"q1": "blue"}))
        return "red"

    told: list[HarnessResult] = []
    async with a_harness(tmp_path, [COLOUR], on_question=answer) as harness:
        told.append(await harness.run("paint"))

    assert [result.output_text for result in told] == ["told: blue", "told: blue"]
    assert "was not answered: it is over: done" in caplog.text


async def test_who_is_asked_is_not_waited_for_where_the_run_is_put_aside(tmp_path: Path) -> None:
    async def answer(asked: OpenQuestion) -> str:
        if asked.id == "q1":
            return "red"
        await harness.park()
        await asyncio.Event().wait()
        raise AssertionError("it is cancelled")

    async with a_harness(tmp_path, [COLOUR, SIZE], on_question=answer) as harness:
        result = await harness.run("paint")

    assert [asked.id for asked in result.questions] == ["q2"]
    assert answers_of(tmp_path / "runs.db", result.run_id) == {"q1": "red", "q2": None}


@pytest.mark.parametrize(
    ("answer", "error"), [("green", AnswerError), ("", AnswerError), (3, ConfigError)]
)
async def test_what_is_no_answer_is_an_error_and_the_run_waits(
    tmp_path: Path, answer: Any, error: type[HarnessError]
) -> None:
    async with a_harness(tmp_path, [COLOUR], on_question=lambda _: answer) as harness:
        with pytest.raises(error):
            await harness.run("paint")

    assert answers_of(tmp_path / "runs.db", str(harness.run_id)) == {"q1": None}


async def test_a_run_that_waits_is_followed_from_where_it_goes_on(tmp_path: Path) -> None:
    words = "It is painted."

    def script(messages: Sequence[Any]) -> Reply:
        if messages[-1].role != "tool":
            return Reply.calls([COLOUR, SIZE])
        return Reply.call("work_complete", {"summary": "all"}, said=words)

    async with a_harness(tmp_path, script=script) as harness:
        waiting = await harness.run("paint")
        run_id = waiting.run_id
        part = [item async for item in harness.resume_stream(run_id, answers={"q1": "red"})]
        rest = [item async for item in harness.resume_stream(run_id, answers={"q2": "M"})]

    assert [one.event.type for one in part if isinstance(one, RunEvent)] == [
        "question_answered",
        "input_awaited",
    ]
    said = [one.text for one in rest if isinstance(one, TextDelta)]
    assert "".join(said) == words
    # The text of an answer comes before the event that tells of it, as in a run from its start.
    kinds = [one.event.type if isinstance(one, RunEvent) else one.__class__ for one in rest[:-1]]
    assert kinds.index(TextDelta) < kinds.index("agent_response")
    assert isinstance(rest[-1], HarnessResult)
    assert rest[-1].status == "done"


PAGE = "docs/questions.md"


@pytest.mark.timeout(240)
def test_the_python_of_its_page_prints_what_is_said_of_it(tmp_path: Path) -> None:
    (said,) = re.findall(r"^It prints `(.*)`\.$", text_of(PAGE), re.MULTILINE)

    ended = run_python_of(PAGE, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{said}\n"


def test_the_bounds_of_its_page_are_those_of_the_code() -> None:
    page = text_of(PAGE).replace("\n", " ")
    assert f"at most {MOST_QUESTION_CHARS:,} characters, at most {MOST_OPTIONS} options" in page
    assert f"of more than {MOST_ANSWER_CHARS:,} characters" in page
