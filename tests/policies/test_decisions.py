"""A decision comes back from its text as it was, and what is none is refused in words."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.policies.decisions import (
    Approve,
    Decision,
    Refuse,
    Respond,
    decision_in,
    decision_text,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**200), 2**200) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
decisions = st.one_of(
    st.builds(Approve, st.none() | st.dictionaries(texts, plain, max_size=3), texts),
    st.builds(Approve, st.none(), texts, st.sampled_from(["", "tool", "arguments"])),
    st.builds(Refuse, texts, st.sampled_from(["", "tool", "arguments"])),
    st.builds(Respond, texts.filter(str.strip)),
)


@given(decisions)
def test_a_decision_comes_back_from_its_text(decision: Decision) -> None:
    text = decision_text(decision)
    assert decision_in(text) == decision
    assert decision_text(decision_in(text)) == text


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (Approve(), '{"decision":"approve"}'),
        (Approve({}), '{"decision":"approve","arguments":{}}'),
        (Approve(standing="tool"), '{"decision":"approve","standing":"tool"}'),
        (Refuse(), '{"decision":"deny"}'),
        (Respond("17"), '{"decision":"respond","text":"17"}'),
    ],
)  # fmt: skip
def test_only_what_was_said_is_kept(decision: Decision, text: str) -> None:
    assert decision_text(decision) == text


@pytest.mark.parametrize("words", ["yes", " YES\n", "Approve", "approve"])
def test_yes_in_a_word(words: str) -> None:
    assert decision_in(words) == Approve()


@pytest.mark.parametrize("words", ["no", "No ", "deny", "DENY"])
def test_no_in_a_word(words: str) -> None:
    assert decision_in(words) == Refuse()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("maybe", "'maybe' is no decision: say yes or no"),
        ("", "is no decision"),
        ("x" * 10_000, "is no decision"),
        ("[" * 5_000, "is no decision"),
        ("true", "is no decision"),
        ('{"decision": "deny", "decision": "approve"}', "the key 'decision' is given twice"),
        ('{"decision": "approve", "arguments": {"a": 1, "a": 2}}', "the key 'a' is given twice"),
        ('["approve"]', "is no decision"),
        ("{}", "must be one of approve, deny, respond, not None"),
        ('{"decision": "perhaps"}', "must be one of approve, deny, respond, not 'perhaps'"),
        ('{"decision": ["deny"]}', "must be one of approve, deny, respond"),
        ('{"decision": "deny", "arguments": {}}', "to deny has no field 'arguments'; it has "),
        ('{"decision": "approve", "argument": {}}', "has no field 'argument'"),
        ('{"decision": "approve", "arguments": [1]}', "the arguments are what is no JSON object"),
        ('{"decision": "approve", "note": 7}', "the note must be a text, not 7"),
        ('{"decision": "approve", "standing": "run"}', "stands for 'tool' or for 'arguments'"),
        ('{"decision": "deny", "standing": ["tool"]}', "stands for 'tool' or for 'arguments'"),
        ('{"decision": "respond"}', "must be a text, and not empty"),
        ('{"decision": "respond", "text": " "}', "must be a text, and not empty"),
        ('{"decision": "respond", "text": 17}', "must be a text, and not empty"),
    ],
)  # fmt: skip
def test_what_is_no_decision_is_refused_in_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        decision_in(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{}", "what is no JSON object"),
        ([], "what is no JSON object"),
        ({1: 2}, "what is no JSON object"),
        ({"at": object()}, "what is no plain JSON"),
        ({"text": "x" * 60_000}, r"60,\d+ bytes; 49,152 are allowed"),
    ],
)
def test_arguments_that_no_call_is_made_with_are_refused(arguments: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"the arguments are {problem}"):
        Approve(arguments)


def test_arguments_are_looked_at_again_when_they_are_kept() -> None:
    arguments: dict[str, Any] = {"order": 17}
    decision = Approve(arguments)
    arguments["order"] = object()
    with pytest.raises(ValueError, match="the arguments are what is no plain JSON"):
        decision_text(decision)


def test_a_note_is_bounded() -> None:
    assert Refuse("x" * 2_000).note
    with pytest.raises(ValueError, match="the note has 2,001 characters, and may have 2,000"):
        Refuse("x" * 2_001)


def test_changed_arguments_stand_for_one_call_alone() -> None:
    with pytest.raises(ValueError, match="stands for one call alone"):
        Approve({"order": 17}, standing="tool")


def test_a_text_with_what_is_no_unicode_is_kept_readable() -> None:
    assert json.loads(decision_text(Refuse("caf\udce9")))["note"] == "caf?"
