"""What a person is shown of long arguments, and may not take for the whole of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.policies.shown_arguments import (
    LEFT_OUT,
    SHOWN_CHARS,
    shown_arguments,
    taken_from_shown,
)

LONG = {"path": "a", "content": "x" * 100_000, "more": ["y" * 600]}
MANY = {str(number): number for number in range(10_000)}


def shown(arguments: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(shown_arguments(json.dumps(arguments)))
    return read


def test_long_arguments_are_shown_as_json_that_is_not_long() -> None:
    assert len(json.dumps(shown(LONG))) <= SHOWN_CHARS
    assert shown(LONG)["path"] == "a"
    assert shown(LONG)["content"].endswith("(100,000 characters)")
    assert shown_arguments('{"n": 1}') == '{"n": 1}'
    assert "too many to be shown" in shown_arguments(json.dumps(MANY))


@pytest.mark.parametrize("name", ["content", "more"])
def test_what_is_shown_in_part_is_not_taken_for_the_whole(name: str) -> None:
    told = shown(LONG)
    whole = LONG | {"path": "b"}

    assert taken_from_shown(told, whole | {name: told[name]}) == name
    assert taken_from_shown(told, whole | {"path": {"deep": [told[name]]}}) == "path"
    assert taken_from_shown(told, whole) is None
    assert taken_from_shown(told, {"path": "b"}) is None


def test_what_stands_for_too_many_is_no_argument() -> None:
    told = shown(MANY)
    assert taken_from_shown(told, told) == LEFT_OUT
    assert taken_from_shown(told, {"0": 1}) is None


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.text(max_size=10), VALUES, max_size=5))
def test_what_is_shown_whole_may_be_taken(arguments: dict[str, Any]) -> None:
    assert taken_from_shown(shown(arguments), arguments) is None
