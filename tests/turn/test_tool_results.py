"""What the tools of a run gave last, as its log has it."""

from harness_actors.messages import Message, ToolCall
from harness_actors.turn.tool_results import LoggedResults

TASK = Message.user("the task")


def called(*calls: tuple[str, str]) -> Message:
    """A message that calls tools, each given as id and name."""
    return Message.assistant(None, [ToolCall(call_id, name, "{}") for call_id, name in calls])


def failed(call_id: str, text: str) -> Message:
    return Message.tool_result(call_id, text, failure="failed")


def newest(log: list[Message], name: str) -> tuple[str, bool, str] | None:
    found = LoggedResults(log, (TASK,)).newest(name)
    return None if found is None else (found.call_id, found.is_error, found.text)


def test_of_one_message_the_last_call_is_the_newest() -> None:
    results = [Message.tool_result("a", "fine"), failed("b", "broken")]
    assert newest([TASK, called(("a", "check"), ("b", "check")), *results], "check") == (
        "b",
        True,
        "broken",
    )


def test_ids_that_come_again_are_those_of_their_own_message() -> None:
    log = [
        TASK,
        called(("a", "check")),
        failed("a", "broken"),
        called(("a", "other")),
        Message.tool_result("a", "fine"),
    ]
    assert newest(log, "check") == ("a", True, "broken")
    assert newest(log, "other") == ("a", False, "fine")


def test_what_stands_before_the_task_is_of_other_runs() -> None:
    before = [Message.user("before"), called(("a", "check")), Message.tool_result("a", "fine")]
    assert newest([*before, TASK], "check") is None
    assert newest([*before, TASK, called(("b", "x")), failed("b", "no")], "check") is None


def test_a_tool_may_be_asked_for_after_another_one() -> None:
    log = [TASK, called(("a", "one")), Message.tool_result("a", "1")]
    log += [called(("b", "two")), Message.tool_result("b", "2")]
    results = LoggedResults(log, (TASK,))
    assert results.newest("one") is not None
    assert results.newest("two") is not None
    assert results.newest("three") is None
