"""Runs that go in circles are told apart from those that work on, by their rounds alone."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.config import StallConfig
from harness_actors.conversation import Conversation
from harness_actors.errors import ConfigError
from harness_actors.messages import Message, ToolCall
from harness_actors.progress import ProgressWatch, Round, RunProgress, Stall, round_of
from harness_actors.progress.watch import REMEMBERED_CALLS, REMEMBERED_ROUNDS
from tests.data import shortened

IN_A_CIRCLE = "tau-airline/gpt-4o-airline-task9-trial2"
"""The one that is labelled so by hand; see the page beside it."""

Did = tuple[str, str, str]
"""Tool, arguments, result; an error where that begins with an exclamation mark."""


def a_round(*did: Did, text: str | None = None, volatile: Sequence[str] = ()) -> Round:
    calls = [ToolCall(f"c{at}", tool, arguments) for at, (tool, arguments, _) in enumerate(did)]
    results = {
        f"c{at}": Message.tool_result(
            f"c{at}", said, failure="failed" if said.startswith("!") else None
        )
        for at, (_, _, said) in enumerate(did)
    }
    return round_of(Message.assistant(text, calls), results, volatile)


def read(name: str, said: str = "text") -> Round:
    return a_round(("read_file", json.dumps({"path": name}), f"{name}: {said}"))


def found(
    rounds: Iterable[Round | None], rules: StallConfig | None = None
) -> list[tuple[int, str]]:
    """Each stall that is told, as the number of the round and the kind; where a user speaks (None)
    another run begins."""
    watch = ProgressWatch(rules)
    told: list[tuple[int, str]] = []
    for number, one in enumerate(rounds, start=1):
        if one is None:
            watch = ProgressWatch(rules)
        elif stall := watch.add(one):
            told.append((number, stall.kind))
    return told


def last_of(rounds: Sequence[Round]) -> Stall | None:
    watch = ProgressWatch()
    return [watch.add(one) for one in rounds][-1]


# ---- runs that come to nothing ------------------------------------------------------------


def test_equal_calls_with_equal_results_are_a_repetition_at_the_third_time() -> None:
    assert found([read("a")] * 4) == [(3, "repetition"), (4, "repetition")]
    stall = last_of([read("a")] * 3)
    assert stall is not None
    assert stall.text == (
        'you made read_file({"path": "a"}) 3 times in a row, with the same result each time'
    )


@pytest.mark.parametrize("names", ["a", "ab", "abcde"])
def test_each_stall_tells_how_many_rounds_show_it(names: str) -> None:
    watch = ProgressWatch()
    told = [stall.rounds for stall in map(watch.add, map(read, names * 6)) if stall is not None]
    most = min(told[0] + len(told), watch.reach - REMEMBERED_ROUNDS + 1)
    assert told[: most - told[0]] == list(range(told[0], most))


def test_order_and_spaces_of_arguments_are_no_difference() -> None:
    ways = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', ' {"b": 2, "a": 1}']
    assert found([a_round(("look", one, "x")) for one in ways]) == [(3, "repetition")]


@pytest.mark.parametrize(("names", "at"), [("ab", 6), ("aab", 8), ("abcde", 10)])
def test_a_circle_is_found_when_it_has_come_round(names: str, at: int) -> None:
    told = found([read(name) for name in names * 4])
    assert told[0][0] == at
    assert at <= 10


def test_a_circle_of_two_names_both() -> None:
    stall = last_of([read(name) for name in "ababab"])
    assert stall is not None
    assert stall.kind == "alternation"
    assert 'read_file({"path": "a"}), read_file({"path": "b"})' in stall.text


def test_calls_of_one_tool_that_all_fail_are_told_whatever_they_ask() -> None:
    failing = [a_round(("run", json.dumps({"n": n}), f"!no {n}")) for n in range(6)]
    assert found(failing) == [(5, "failures"), (6, "failures")]
    assert found([*failing[:4], read("a"), *failing[4:]]) == []


def test_failures_of_several_tools_are_no_streak() -> None:
    tools = ("run", "build", "run", "build", "test", "run")
    failing = [a_round((tool, json.dumps({"n": n}), f"!no {n}")) for n, tool in enumerate(tools)]
    assert found(failing) == []


def test_a_circle_of_three_is_told_where_news_are_waited_for_longer() -> None:
    told = found([read(name) for name in "abcabcabc"], StallConfig(no_news=20))
    assert told == [(9, "alternation")]


def test_the_same_words_without_a_call_are_a_monologue() -> None:
    said = [a_round(text="I go on.")] * 3
    assert found(said) == [(3, "monologue")]
    assert found([*said[:2], a_round(text="I have it.")]) == []


# ---- runs that must not be stopped --------------------------------------------------------


def test_a_job_that_is_asked_about_thirty_times_is_no_stall() -> None:
    polls = [a_round(("status", "{}", "running"), volatile=["status"])] * 30
    assert found(polls) == []


def test_what_is_looked_at_beside_a_job_may_be_the_same() -> None:
    beside = a_round(("read_file", "{}", "log"), ("status", "{}", "on"), volatile=["status"])
    assert found([beside] * 30) == []


def test_tests_that_run_again_after_each_edit_are_no_stall() -> None:
    rounds = []
    for number in range(20):
        rounds.append(a_round(("edit_file", json.dumps({"new": number}), "edited")))
        rounds.append(a_round(("run_command", '{"command": "pytest"}', "exit code: 1")))
    assert found(rounds) == []


def test_many_files_and_many_pages_are_no_stall() -> None:
    files = [read(f"src/{number}.py") for number in range(40)]
    pages = [
        a_round(("read_file", json.dumps({"path": "a", "start": n * 100}), f"page {n}"))
        for n in range(40)
    ]
    assert found(files + pages) == []


def test_a_file_that_changes_may_be_read_again_and_again() -> None:
    assert found([read("log", f"line {number}") for number in range(30)]) == []


def test_news_begin_the_count_anew() -> None:
    assert found([read("a"), read("a"), read("b"), read("a"), read("a")]) == []


def test_what_was_seen_long_ago_is_news() -> None:
    circle = [read(f"{number}") for number in range(REMEMBERED_ROUNDS)]
    assert found(circle * 3)[0] == (REMEMBERED_ROUNDS + 5, "no_news")
    assert found([*circle, read("one more")] * 3) == []


# ---- the recorded conversations of real agents --------------------------------------------


def rounds_in(messages: Sequence[dict[str, Any]]) -> Iterator[Round | None]:
    """The rounds of a conversation, as Chat Completions has them; None where its user speaks."""
    log = [Message.from_wire(dict(message)) for message in messages]
    for at, message in enumerate(log):
        if message.role == "user":
            yield None
        elif message.role == "assistant":
            results = {}
            for result in log[at + 1 :]:
                if result.role != "tool":
                    break
                results[result.tool_call_id or ""] = result
            yield round_of(message, results)


CONVERSATIONS = shortened()


@pytest.mark.parametrize("name", sorted(CONVERSATIONS.keys() - {IN_A_CIRCLE}))
def test_real_agents_that_work_are_neither_stopped_nor_warned(name: str) -> None:
    assert found(rounds_in(CONVERSATIONS[name])) == []


def test_a_real_agent_that_goes_in_a_circle_is_told_so() -> None:
    told = found(rounds_in(CONVERSATIONS[IN_A_CIRCLE]))
    assert {kind for _, kind in told} == {"alternation"}


def test_there_are_thirty_conversations_of_real_agents() -> None:
    assert len(CONVERSATIONS) == 30
    assert sum(len(list(rounds_in(messages))) for messages in CONVERSATIONS.values()) > 2000


# ---- any rounds ---------------------------------------------------------------------------

NAMES = st.sampled_from("abc")


@given(st.lists(NAMES, max_size=40), st.integers(0, 30))
def test_what_was_before_news_changes_nothing(names: list[str], fresh: int) -> None:
    after = [read(f"new {number}") for number in range(fresh)]
    told = found([*map(read, names), *after])
    assert all(number <= len(names) for number, _ in told)


@given(st.lists(NAMES, min_size=3, max_size=8))
def test_whatever_a_circle_is_made_of_it_is_found(names: list[str]) -> None:
    told = found(list(map(read, names * 6)))
    assert told
    assert told[0][0] <= 2 * len(names) + 5


def test_what_is_remembered_is_bounded() -> None:
    watch = ProgressWatch()
    for number in range(100):
        watch.add(a_round(*((f"t{at}", str(number), "x") for at in range(200))))
    assert len(watch._seen) <= REMEMBERED_CALLS + 200
    for number in range(REMEMBERED_ROUNDS + 1):
        watch.add(read(str(number)))
    assert len(watch._seen) <= REMEMBERED_ROUNDS + 1


def a_log(names: Iterable[str]) -> list[Message]:
    """What a run adds to its conversation, a round for each name."""
    log: list[Message] = []
    for at, name in enumerate(names):
        arguments = json.dumps({"path": name})
        log.append(Message.assistant(None, [ToolCall(f"c{at % 3}", "read_file", arguments)]))
        log.append(Message.tool_result(f"c{at % 3}", name))
    return log


TASK = Message.user("do it")


def progress_of(log: Conversation, rules: StallConfig | None = None) -> RunProgress:
    return RunProgress("run", rules or StallConfig(), (), log, TASK)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 30)), min_size=1, max_size=12),
    st.integers(0, 300),
)
def test_whoever_begins_later_comes_to_the_same(parts: list[tuple[str, int]], cut: int) -> None:
    names = [f"{name}{at % 7}" for name, count in parts for at in range(count)]
    messages = a_log(names)
    log = Conversation([TASK, *messages[: 2 * cut]])
    always, late = progress_of(Conversation([TASK])), progress_of(log)
    assert late.read(log) == always.read(log)
    for at in range(2 * cut, len(messages), 2):
        log.extend(messages[at : at + 2])
        assert late.read(log) == always.read(log)


def test_what_other_runs_did_before_is_no_part_of_a_circle() -> None:
    log = Conversation([TASK, *a_log("aaa"), Message.user("and now"), *a_log("aa")])
    one = RunProgress("two", StallConfig(), (), log, Message.user("and now"))
    assert one.read(log) is None
    log.extend(a_log("a"))
    stall = one.read(log)
    assert stall is not None
    assert stall.kind == "repetition"


def test_a_round_whose_calls_are_open_is_not_read() -> None:
    log = Conversation([TASK, *a_log("aa")])
    one = progress_of(log)
    assert one.read(log) is None
    log.append(a_log("a")[0])
    assert one.read(log) is None
    log.append(Message.tool_result("c0", "a"))
    assert one.read(log) is not None


# ---- rules --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 1001, 2.5, True, "3", None])
@pytest.mark.parametrize("name", ["threshold", "no_news", "failures"])
def test_a_rule_is_a_whole_number_of_rounds(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"stall.{name}.*must be"):
        StallConfig(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, 1001, 1.0, True, None])
def test_grace_is_at_least_one_round(value: object) -> None:
    with pytest.raises(ConfigError, match=r"stall.grace.*must be"):
        StallConfig(grace=value)  # type: ignore[arg-type]


def test_rules_may_be_other_ones() -> None:
    rules = StallConfig(threshold=2)
    assert found([read("a")] * 2, rules) == [(2, "repetition")]
