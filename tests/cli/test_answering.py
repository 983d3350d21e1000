"""What a run is answered in one command: all of it, each question once, or nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.cli.ctl.answered_run import AnsweredRun
from harness_actors.cli.ctl.given_answers import GivenAnswer
from harness_actors.errors import AnswerError
from harness_actors.policies.decisions import Approve, Refuse
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


def an_approval(**calls: str | None) -> AnsweredRun:
    """A run that waits for approval of calls, and for the answer to a question."""
    run = a_run(None, q0=None, **calls)
    approvals = tuple(
        {"kind": "approval", "tool": "refund", "arguments": '{"order": 17}', "call_id": f"c_{name}"}
        for name in calls
    )
    question, *asked = run.heading.questions
    told = tuple({**one, **more} for one, more in zip(asked, approvals, strict=True))
    run.heading = replace(run.heading, questions=(question, *told))
    return run


def decide_all(run: AnsweredRun) -> None:
    run.decide_all(Approve())


YES = '{"decision":"approve"}'


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


@pytest.mark.parametrize("name", ["", "q1", "c_q1"])
def test_a_call_is_decided_about_by_the_id_of_either_or_where_it_is_the_only_one(
    name: str,
) -> None:
    run = an_approval(q1=None, q2=YES)
    run.decide(name, Approve())
    assert run.answers == {"q1": YES}
    assert run.said() == {"approved": ["q1"]}
    with pytest.raises(AnswerError, match="'q1' is answered twice here"):
        run.decide("q1", Refuse())


def test_of_several_calls_that_wait_one_must_be_named_or_all() -> None:
    calls = r'2 of its calls wait for approval: q1 \(refund {"order": 17}\), q2 \(refund .*--all'
    with pytest.raises(AnswerError, match=calls):
        an_approval(q1=None, q2=None, q3=YES).decide("", Approve())
    run = an_approval(q1=None, q2=None, q3=YES)
    run.decide_all(Refuse("no"))
    assert run.said() == {"denied": ["q1", "q2"]}


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("q7", r"no call 'q7' of it waits for approval; there are q1 \(refund"),
        ("q0", "'q0' is a question, and no call to decide about; answer it by harness ctl run ans"),
    ],
)
def test_what_is_no_call_that_waits_is_not_decided_about(call: str, problem: str) -> None:
    with pytest.raises(AnswerError, match=problem):
        an_approval(q1=None).decide(call, Approve())


@pytest.mark.parametrize("decide", [lambda run: run.decide("", Approve()), decide_all])
def test_where_no_call_waits_nothing_is_decided(decide: Callable[[AnsweredRun], None]) -> None:
    late = an_approval(q1=YES)
    late.heading = replace(
        late.heading, questions=tuple({**one, "expired": True} for one in late.heading.questions)
    )
    over = HarnessResult(run_id="run", status="cancelled", reason=Reason(kind="user"))
    for run, problem in (
        (a_run(q1=None), "no call of it waits for approval"),
        (an_approval(q1=YES), "were decided about before; the first decision counts"),
        (late, "the time to decide about its calls is over"),
        (a_run(over, q1=None), "it is over: cancelled"),
        (a_run(), "it waits for no answer"),
    ):
        with pytest.raises(AnswerError, match=problem):
            decide(run)
        assert run.answers == {}


@pytest.mark.parametrize(
    ("text", "decision"),
    [("Yes", YES), ("no", '{"decision":"deny"}'), (YES, YES), (' {"decision": "approve"} ', YES)],
)
def test_a_call_is_decided_about_by_a_word_as_well(text: str, decision: str) -> None:
    run = an_approval(q1=None)
    run.add(given(text, "q1"))
    assert run.answers == {"q1": decision}


def test_an_answer_that_decides_nothing_is_refused_with_the_commands_that_do() -> None:
    how = "no decision: say yes or no, or use harness ctl run approve run q1 --store .*, or deny"
    with pytest.raises(AnswerError, match=how):
        an_approval(q1=None).add(given("perhaps", "q1"))


def test_a_word_that_decides_is_a_text_where_a_question_is_asked() -> None:
    run = an_approval(q1=None)
    run.add(given("yes", "q0"))
    assert run.answers == {"q0": "yes"}
    assert run.said() == {"answered": ["q0"]}
