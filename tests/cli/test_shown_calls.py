"""What a person sees of a call is all that it is made with, and orders no terminal about."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.cli.shown_calls import (
    BRIEF_CHARS,
    MOST_CHARS,
    MOST_LINES,
    MOST_OF_ONE,
    brief_call,
    call_lines,
    decided,
    is_cut,
)
from harness_actors.policies.decisions import Approve, Decision, Refuse, Respond, decision_text
from harness_actors.printing.plain import printable

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
calls = st.dictionaries(st.text(max_size=9), values, max_size=4)


@given(calls)
def test_nothing_that_is_shown_orders_a_terminal_about(arguments: dict[str, object]) -> None:
    for line in call_lines("tool\x1b[2J", arguments, whole=True):
        assert printable(line) == line
        assert "\n" not in line
    assert "\n" not in brief_call("tool\n", arguments)


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=60), min_size=1, max_size=4))
def test_different_arguments_are_shown_differently(arguments: dict[str, str]) -> None:
    shown = list(call_lines("tool", arguments, whole=True))
    for name in arguments:
        changed = {**arguments, name: arguments[name] + "x"}
        assert list(call_lines("tool", changed, whole=True)) != shown


def test_no_text_looks_like_another_argument() -> None:
    shown = list(call_lines("send", {"text": "hello\n    to: boss\n)", "to": "all"}))
    assert shown == [
        "send(",
        "    text:",
        "      | hello",
        "      |     to: boss",
        "      | )",
        '    to: "all"',
        ")",
    ]
    (_, named, _) = call_lines("send", {"to: boss\n": 1})
    assert named == r'    "to: boss\n": 1'


def test_what_is_harmful_is_shown_as_json_has_it_and_may_be_typed_again() -> None:
    arguments = {"to": "\x1b[2J\u202eevil\x9b"}
    (_, line, _) = call_lines("send", arguments)
    assert line == r'    to: "\u001b[2J\u202eevil\u009b"'
    assert json.loads(line.partition(": ")[2]) == arguments["to"]


def test_numbers_and_texts_that_look_like_them_are_told_apart() -> None:
    (_, *lines, _) = call_lines("pay", '{"a": 17, "b": "17", "c": null, "d": {"e": [1]}}')
    assert lines[:3] == ["    a: 17", '    b: "17"', "    c: null"]
    assert lines[3:] == ["    d: {", '        "e": [', "          1", "        ]", "      }"]


def test_long_arguments_are_cut_and_it_is_said_by_how_much() -> None:
    script = "\n".join(f"line {number}" for number in range(100))
    shown = list(call_lines("sh", {"script": script, "host": "db1"}))
    assert shown[-3:] == ["      … and 89 more lines", '    host: "db1"', ")"]
    assert len(shown) == MOST_OF_ONE + 4
    many = list(call_lines("sh", dict.fromkeys(map(str, range(100)), 1)))
    assert len(many) == MOST_LINES + 3
    assert many[-2] == "    … and 40 more lines"
    (_, line, _) = call_lines("sh", {"script": "x" * 1000})
    assert len(line) < MOST_CHARS + 50
    assert line.endswith("… (610 more characters)")
    assert is_cut("sh", {"script": script})
    assert is_cut("sh", {"script": "x" * 1000})
    assert not is_cut("sh", {"script": "ls"})
    assert len(list(call_lines("sh", {"script": script}, whole=True))) == 103
    assert len(brief_call("sh", {"script": script})) == BRIEF_CHARS + len("sh …")


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"', None])
def test_what_is_no_object_is_shown_as_it_is(arguments: str | None) -> None:
    (_, line, _) = call_lines("sh", arguments)
    assert line.strip() in (json.dumps(arguments), arguments)


def test_a_call_without_arguments_takes_a_line() -> None:
    assert list(call_lines("ping", "{}")) == ["ping()"]


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Approve(), "approved"),
        (Approve(note="fine\x1b"), "approved: fine␛"),
        (Approve({"order": 1}), 'approved with {"order": 1}'),
        (Approve(standing="tool"), "approved, and so are all later calls of this tool"),
        (
            Refuse("not today", "arguments"),
            "denied, and so are later calls of this tool with these arguments: not today",
        ),
        (Respond("17\n"), "answered in its place: 17␊"),
    ],
)
def test_a_decision_is_told_in_words(decision: Decision, words: str) -> None:
    assert decided(decision_text(decision)) == words


def test_an_answer_that_decides_nothing_is_told_as_it_is() -> None:
    assert decided("perhaps\n") == "perhaps␊"
