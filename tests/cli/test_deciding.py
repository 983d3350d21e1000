"""Which lines of a person approve a call, and which do not."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from harness_actors.cli.deciding import KEYS, VIEW, Deciding
from harness_actors.cli.event_lines import question_lines
from harness_actors.cli.questions import Choosing, dialogue
from harness_actors.policies.decisions import Approve, Decision, Refuse, Respond, decision_in
from harness_actors.policies.shown_arguments import shown_arguments
from harness_actors.results import OpenQuestion


def asked(**arguments: Any) -> OpenQuestion:
    return OpenQuestion(
        id="q1",
        text="May refund be called?",
        why="it cannot be undone",
        kind="approval",
        tool="refund",
        arguments=arguments,
    )


def typed(*lines: str, question: OpenQuestion | None = None) -> Decision | None:
    """What several lines come to; nothing where they decide nothing."""
    deciding = Deciding(question or asked(order=17))
    for line in lines[:-1]:
        assert deciding.take(line) is None
    answer = deciding.take(lines[-1])
    return None if answer is None else decision_in(answer)


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["y"], Approve()),
        ([" YES \n"], Approve()),
        (["approve"], Approve()),
        (["t"], Approve(standing="tool")),
        (["tool"], Approve(standing="tool")),
        (["s"], Approve(standing="arguments")),
        (["n", ""], Refuse()),
        (["no", "ask first"], Refuse("ask first")),
        (["deny", "y"], Refuse("y")),
        (["n ask first"], Refuse("ask first")),
        (["e", '{"order": 18}'], Approve({"order": 18})),
        (['e {"order": 18}'], Approve({"order": 18})),
        (["e", "{", "[1]", "{}"], Approve({})),
        (["e", "", "y"], Approve()),
        (["a", "it was paid"], Respond("it was paid")),
        (["answer", "  ", "n", "no"], Refuse("no")),
        (["v", "y"], Approve()),
        (["what?", "y"], Approve()),
    ],
)
def test_lines_that_decide(lines: list[str], decision: Decision) -> None:
    assert typed(*lines) == decision


@pytest.mark.parametrize(
    "line",
    ["", " ", "yes, but not this one", "y but", "approve 17", "ok", "ye", "always", "tool x",
     "answer the phone", "a moment", "no problem", "e not json", 'e "text"', "n " + "x" * 2001],
)  # fmt: skip
def test_lines_that_decide_nothing_and_are_told_what_would(line: str) -> None:
    deciding = Deciding(asked(order=17))
    assert deciding.take(line) is None
    assert deciding.told
    assert deciding.wanted == "y/n/e/a/t/s"


def test_a_line_that_could_not_be_read_decides_nothing_in_any_step() -> None:
    for lines in ([], ["n"], ["e"], ["a"]):
        deciding = Deciding(asked(order=17))
        for line in lines:
            deciding.take(line)
        before = deciding.wanted
        assert deciding.take(None) is None
        assert deciding.wanted == before


def test_arguments_are_edited_from_what_they_are() -> None:
    deciding = Deciding(asked(text="a\nb\x1b", order=17))
    deciding.take("e")
    now = deciding.told[0].removeprefix("now: ")
    assert now == r'{"text": "a\nb\u001b", "order": 17}'
    answer = deciding.take(now)
    assert answer is not None
    assert decision_in(answer) == Approve({"text": "a\nb\x1b", "order": 17})


def test_what_was_shown_in_part_is_asked_for_whole() -> None:
    shown = json.loads(shown_arguments(json.dumps({"text": "x" * 30_000, "order": 17})))
    for lines in ([f"e {json.dumps(shown | {'order': 18})}"], ["e", json.dumps(shown)]):
        deciding = Deciding(asked(**shown))
        assert [deciding.take(line) for line in lines][-1] is None
        assert deciding.told == ("'text' was cut where it is shown: give it whole, or approve it",)


def test_a_call_is_put_with_its_arguments_and_the_keys() -> None:
    assert list(Deciding(asked(order=17)).put()) == [
        "q1: May refund be called?",
        "    refund(",
        "        order: 17",
        "    )",
        "    it cannot be undone",
        *KEYS,
    ]


def test_it_is_said_until_when_a_call_may_be_decided_about() -> None:
    at = time.mktime((2026, 11, 25, 12, 30, 5, 0, 0, -1))
    put = list(Deciding(replace(asked(order=17), expires_at=at)).put())
    assert "    decide until 2026-11-25 12:30:05" in put
    told = {"id": "q1", "text": "?", "kind": "approval", "tool": "t", "arguments": "{}"}
    waits = {**told, "expires_at": at, "answer": None}
    assert list(question_lines([waits]))[-1] == "    decide until 2026-11-25 12:30:05"
    late = {**waits, "answer": '{"decision":"deny","note":"nobody was there"}'}
    assert list(question_lines([late]))[-1] == "    denied: nobody was there"


def test_a_call_that_is_cut_may_be_viewed_whole() -> None:
    deciding = Deciding(asked(text="\n".join(map(str, range(100)))))
    put = list(deciding.put())
    assert "          | 99" not in put
    assert put[-1] == VIEW
    assert deciding.take("v") is None
    assert "          | 99" in deciding.told


def test_a_question_is_answered_in_a_line_and_a_call_decided_about() -> None:
    assert isinstance(dialogue(OpenQuestion(id="q1", text="Which?")), Choosing)
    assert isinstance(dialogue(asked()), Deciding)
