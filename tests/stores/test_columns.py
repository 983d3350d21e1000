"""Values that do not belong into a column are refused, whichever of SQLite's kinds they are."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from harness_actors.results import encode_result
from harness_actors.stores.codec import pack, unpack_result
from harness_actors.stores.columns import check_body, mapping, number, text, whole
from tests.stores.entries import an_end

VALUES: list[Any] = [None, True, 0, 2**62, -1, 0.0, 1.5, inf, -inf, nan, "", "1", b"x", [], {}]
TAKEN: dict[Callable[[Any], object], list[Any]] = {
    text: ["", "1"],
    whole: [0, 2**62, -1],
    number: [0, 2**62, -1, 0.0, 1.5],
    mapping: [{}],
}


@pytest.mark.parametrize("column", TAKEN, ids=lambda column: column.__name__)
def test_a_column_takes_its_own_kind_alone(column: Callable[[Any], object]) -> None:
    for value in VALUES:
        if repr(value) in map(repr, TAKEN[column]):
            assert column(value) == value
        else:
            with pytest.raises(TypeError, match="stands where a"):
                column(value)
    assert type(number(1)) is float


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True"),
        (1.5, "1.5"),
        ("x" * 50, "'" + "x" * 39),
        (b"key", "bytes"),
        (None, "NoneType"),
    ],
)
def test_what_is_refused_is_shown_in_short_or_by_its_kind(value: Any, shown: str) -> None:
    with pytest.raises(TypeError) as refusal:
        mapping(value)
    assert str(refusal.value) == f"{shown} stands where a mapping belongs"


def nested(levels: int) -> dict[str, Any]:
    return {"more": nested(levels - 1)} if levels > 1 else {}


def call_of(function: Any, **rest: Any) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{"id": "1", "function": function} | rest]}


FUNCTION = {"name": "look", "arguments": "{}"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": None},
        {"content": "said"},
        {"content": [], "tool_calls": None},
        {"content": [{"type": "text", "text": "said"}], "tool_calls": []},
        call_of(FUNCTION),
        nested(254),
    ],
)
def test_a_message_of_the_wire_is_taken(body: Any) -> None:
    check_body(body)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "said",
        {"content": 1},
        {"content": {"text": "said"}},
        {"content": ["said"]},
        {"content": [{}, None]},
        {"tool_calls": [1]},
        {"tool_calls": [{"id": "1"}]},
        call_of(None),
        call_of([]),
        call_of({"name": "look"}),
        call_of({"arguments": "{}"}),
        call_of(FUNCTION | {"name": None}),
        call_of(FUNCTION | {"arguments": {}}),
        call_of(FUNCTION, id=1),
        {"tool_calls": [*call_of(FUNCTION)["tool_calls"], {"function": FUNCTION}]},
        nested(255),
    ],
)
def test_what_is_no_message_of_the_wire_is_refused(body: Any) -> None:
    with pytest.raises((TypeError, KeyError, AttributeError, ValueError)):
        check_body(body)


USAGE = encode_result(an_end())["usage"]


@pytest.mark.parametrize(
    "place",
    [
        ("run_id",),
        ("output_text",),
        ("reason", "message"),
        ("reason", "details"),
        ("turn_count",),
        ("wall_s",),
        *(("usage", amount) for amount in USAGE),
    ],
    ids=".".join,
)
def test_a_result_is_taken_with_values_of_its_kinds_alone(place: tuple[str, ...]) -> None:
    plain = encode_result(an_end())
    assert unpack_result(pack(plain)) == an_end()
    *around, name = place
    part = plain[around[0]] if around else plain
    assert name in part
    nonsense: list[Any] = [[], None, True]
    for value in nonsense:
        part[name] = value
        with pytest.raises((TypeError, ValueError)):
            unpack_result(pack(plain))
