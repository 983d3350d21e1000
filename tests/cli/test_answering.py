"""What a run is answered in one command: all of it, each question once, or nothing."""

from pathlib import Path

import pytest

from harness_actors.cli.ctl.answered_run import AnsweredRun
from harness_actors.cli.ctl.given_answers import GivenAnswer
from harness_actors.errors import AnswerError
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, Reason


def a_run(end: HarnessResult | None = None, **questions: str | None) -> AnsweredRun:
    """A run with questions, and what they were answered before."""
    heading = RunHeading(
        run_id="run",
        conversation_id="run",
        added_at=0.0,
        metadata={},
        end=end,
        questions=tuple(
            {"id": name, "text": "?", "answer": answer} for name, answer in questions.items()
        ),
    )
    return AnsweredRun(Path("runs.db"), heading)


def given(text: str, question: str = "") -> GivenAnswer:
    return GivenAnswer(run="run", question=question, text=text)


@pytest.mark.parametrize("names", [("", "q2"), ("q2", ""), ("q2", "q2"), ("", "")])
def test_a_question_is_answered_once_however_it_is_named(names: tuple[str, str]) -> None:
    run = a_run(q1="before", q2=None)
    run.add(given("first", names[0]))

    with pytest.raises(AnswerError, match="'q2' is answered twice here"):
        run.add(given("second", names[1]))
    assert run.answers == {"q2": "first"}


def test_an_answer_without_a_name_is_that_to_the_only_open_question() -> None:
    with pytest.raises(AnswerError, match="2 of its questions are open, so name one: q1, q3"):
        a_run(q1=None, q2="before", q3=None).add(given("this"))
    with pytest.raises(AnswerError, match="were answered before; the first answer counts"):
        a_run(q1="before").add(given("this"))


def test_whether_a_named_question_is_open_its_cell_knows_better() -> None:
    run = a_run(q1="before", q2=None)
    run.add(given("again", "q1"))
    assert run.answers == {"q1": "again"}
    assert [asked["id"] for asked in run.open_questions] == ["q2"]


def test_a_run_that_asks_nothing_or_is_over_takes_no_answer() -> None:
    over = HarnessResult(run_id="run", status="cancelled", reason=Reason(kind="user"))
    with pytest.raises(AnswerError, match="it is over: cancelled"):
        a_run(over, q1=None).add(given("this", "q1"))
    with pytest.raises(AnswerError, match="it waits for no answer"):
        a_run().add(given("this", "q1"))
