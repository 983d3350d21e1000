"""What was answered is compared with what is in the logs."""

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.messages import Failure, Message, ToolCall
from harness_actors.policies import Approve, Refuse
from harness_actors.policies.decisions import decision_text
from tests.chaos.people import Answers, questions_of

ASKS = Message.assistant(
    None,
    [ToolCall("a", "look", "{}"), ToolCall("b", "ask_user", '{"question":"May it go on?"}')],
)


def log(*answers: str) -> list[Message]:
    results = [Message.tool_result("b", answer) for answer in answers]
    return [Message.user("the task"), ASKS, Message.tool_result("a", "seen"), *results]


def faults(answers: Answers, *given: str) -> list[str]:
    return [word for word, _ in answers.faults_in(log(*given))]


def test_a_question_has_the_answer_of_whoever_was_told_that_it_is_taken() -> None:
    answers = Answers(said={"May it go on?": ["yes", "no"]}, taken={"May it go on?": ["no"]})
    assert faults(answers, "no") == []
    assert faults(answers, "yes") == ["doubled"]
    assert questions_of(log("no")) == {"b": "May it go on?"}


def test_of_a_command_that_died_nobody_knows_whether_its_answer_was_taken() -> None:
    answers = Answers(said={"May it go on?": ["yes", "no"]})
    assert faults(answers, "yes") == faults(answers, "no") == []


def test_an_answer_that_nobody_gave_and_none_at_all_are_found() -> None:
    answers = Answers(said={"May it go on?": ["yes"]}, taken={"May it go on?": ["yes"]})
    assert faults(answers, "outcome unknown") == ["unanswered"]
    assert faults(answers) == ["unanswered"]


def test_two_answers_that_were_both_taken_are_found() -> None:
    answers = Answers(said={"May it go on?": ["yes", "no"]}, taken={"May it go on?": ["yes", "no"]})
    assert faults(answers, "yes") == ["doubled"]


PAYS = Message.assistant(None, [ToolCall("p", "pay", '{"what":"step 1"}')])
AS_IT_IS = decision_text(Approve(note="as it is, says person 1."))
EDITED = decision_text(Approve({"what": "step 1", "by": "person 2."}))
DENIED = decision_text(Refuse("not today, says person 3."))
PAID, PAID_BY = "paid in 17 by nobody else", "paid in 17 by person 2."
REFUSED = "The call was not made: its user did not approve of it: not today, says person 3."


def faults_of_pay(
    text: str, how: Failure | None, said: list[str], taken: list[str] | None = None
) -> list[str]:
    result = Message.tool_result("p", text, failure=how)
    answers = Answers(said={"step 1": said}, taken={"step 1": taken or []})
    return [word for word, _ in answers.faults_in([Message.user("the task"), PAYS, result])]


@pytest.mark.parametrize(
    ("text", "how", "decision"),
    [
        (PAID, None, AS_IT_IS),
        (PAID_BY, None, EDITED),
        (REFUSED, "denied", DENIED),
        (UNKNOWN_OUTCOME, "unknown", AS_IT_IS),
        (UNKNOWN_OUTCOME, "unknown", EDITED),
    ],
)
def test_a_call_comes_out_as_somebody_decided(
    text: str, how: Failure | None, decision: str
) -> None:
    others = [one for one in (AS_IT_IS, EDITED, DENIED) if one != decision]
    assert faults_of_pay(text, how, [decision], [decision]) == []
    assert faults_of_pay(text, how, [*others, decision]) == []
    assert faults_of_pay(text, how, []) == ["unanswered"]
    if how != "unknown":
        assert faults_of_pay(text, how, others) == ["unanswered"]
        assert faults_of_pay(text, how, [decision, *others], others[:1]) == ["doubled"]


def test_a_call_that_was_denied_has_no_unknown_outcome() -> None:
    assert faults_of_pay(UNKNOWN_OUTCOME, "unknown", [DENIED]) == ["unanswered"]
    assert faults_of_pay(UNKNOWN_OUTCOME, "unknown", [DENIED, EDITED], [DENIED]) == ["doubled"]
