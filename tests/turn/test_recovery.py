"""What becomes of a model's faults, over the real loop: each is told once, in words that help."""

from typing import Any

import pytest

from harness_actors.config import StallConfig
from harness_actors.conversation import Conversation
from harness_actors.messages import Message
from harness_actors.signals import RunEnd
from harness_actors.testing import Reply
from harness_actors.turn.recovery import CUT_TEXT
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, a_tool, calls, finishes

CUT = Reply.text("It is all but", finish_reason="length")


class Keeping(RecordingModel):
    """Ends its answers as its script says."""

    async def complete(self, request: Any) -> Any:
        self.requests.append(request)
        return await self._model.complete(request)


async def run(script: list[Reply], *tools: Any, **settings: Any) -> tuple[Driver, RunEnd]:
    driver = Driver(SimpleAgent(Keeping(script), tools), **settings)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    driver.check_log()
    return driver, end


def told(driver: Driver) -> list[str]:
    """What the model was told by the harness, the task left out."""
    log = driver.state.log or Conversation()
    return [message.text for message in log if message.role == "user"][1:]


@pytest.mark.parametrize("completion", ["answer", "explicit"])
async def test_a_text_that_was_cut_off_is_told_so_and_the_turn_goes_on(completion: Any) -> None:
    last = Reply.text("It is done.") if completion == "answer" else finishes("It is done.")
    driver, end = await run([CUT, last], completion=completion)

    assert (end.status, end.output_text) == ("done", "It is done.")
    assert end.completion_verified
    assert told(driver) == [CUT_TEXT]
    # It was in the next request, as its last message.
    assert driver.model.requests[1].messages[-1].text == CUT_TEXT


@pytest.mark.parametrize("completion", ["answer", "explicit"])
async def test_a_text_that_is_cut_off_ever_again_is_never_accepted(completion: Any) -> None:
    driver, end = await run([CUT] * 30, completion=completion, stop_policy="strict_automation")

    assert (end.status, end.reason.kind) == ("stalled", "blocked")
    assert "length limit" in end.reason.message
    assert not end.completion_verified
    assert len(driver.model.requests) == 2 * 6


async def test_the_same_words_cut_off_for_ever_are_no_circle() -> None:
    driver, end = await run([CUT] * 30, stall=StallConfig())

    assert (end.status, end.reason.kind) == ("done", "unverified")
    assert told(driver)[::2] == [CUT_TEXT] * 6, "one message for each answer"
    assert len(told(driver)) == 11


async def test_what_was_cut_off_uses_up_no_nudge_while_something_new_happens() -> None:
    steps = [CUT, calls(("a", "write"))] * 9
    driver, end = await run([*steps, finishes("done")], a_tool("write"))

    assert (end.status, end.output_text) == ("done", "done")
    assert told(driver) == [CUT_TEXT] * 9


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_answer_is_no_answer(text: str) -> None:
    driver, end = await run([Reply.text(text), Reply.text("Four.")], completion="answer")

    assert (end.status, end.output_text) == ("done", "Four.")
    (words,) = told(driver)
    assert "your answer was empty" in words
    assert "answer again" in words


async def test_an_empty_or_idle_answer_is_told_what_to_do_where_a_run_ends_by_a_call() -> None:
    driver, end = await run([Reply.text(""), Reply.text("I shall begin."), finishes("so")])

    assert end.status == "done"
    assert len(told(driver)) == 2
    assert all("`work_complete` has not been called" in words for words in told(driver))


async def test_the_nearest_names_are_told_where_there_is_no_such_tool() -> None:
    wanted = calls(("a", "read_fil"), ("b", "zzz"))
    driver, _ = await run([wanted, finishes()], a_tool("read_file"), a_tool("write"))

    results = [message.text for message in _tool_results(driver)]
    assert results[0].endswith("work_complete, write. Did you mean 'read_file'?")
    assert results[1].endswith("work_complete, write.")


def _tool_results(driver: Driver) -> list[Message]:
    return [message for message in driver.state.log or () if message.role == "tool"]
