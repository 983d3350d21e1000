"""What was answered is compared with what is in the logs."""

from harness_actors.messages import Message, ToolCall
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
