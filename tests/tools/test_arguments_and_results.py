"""What models write as arguments, and what functions return: all of it has an outcome."""

import dataclasses
import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools import tool
from harness_actors.tools.argument_model import Argument
from harness_actors.tools.arguments import Arguments
from harness_actors.tools.rendering import render_result


@tool
async def book(count: int, name: str = "", price: float = 0.0) -> str:
    return f"{count} {name} {price}"


@tool
async def ping() -> str:
    return "pong"


@pytest.mark.parametrize("text", ["", "  \n", "{}", " { } "])
async def test_no_arguments_may_be_written_in_several_ways(text: str, context: ToolContext) -> None:
    assert await ping.run(text, context) == "pong"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count=1", r"not a JSON object: Expecting value.*near 'count=1'; expected an object with "
                    r"count, name \(optional\)"),
        ('{"count": 1', "not a JSON object"),
        ('{"count": 1}{"count": 1}', "Extra data"),
        ("[1]", r"not a JSON object: got \[1\]"),
        ('"count"', "not a JSON object: got 'count'"),
        ("null", "not a JSON object: got None"),
        ('{"count": NaN}', "NaN is no JSON value"),
        ('{"count": 1, "price": -Infinity}', "-Infinity is no JSON value"),
        ('{"count": 1, "price": 1e999}', "too large"),
        ('{"count": 1, "count": 2}', "the key 'count' is given twice"),
        ('{"count": 1, "name": {"a": 1, "a": 2}}', "the key 'a' is given twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"count": ' + "9" * 5000 + "}", "not a JSON object"),
        ('{"count": "many"}', "count: Input should be a valid integer.*got 'many'"),
        ('{"count": 1.5}', "count: .*got 1.5"),
        ('{"count": "many"}', r'Wanted: \{"count": \{[^{}]*"type": "integer"[^{}]*\}\}$'),
        ('{"count": null}', "count: .*got None"),
        ("{}", "count: required, but left out"),
        ('{"count": 1, "nmae": "x"}', "nmae: no such argument; there are count, name, price"),
        ('{"count": 1, "name": "\\ud800"}', "break its schema"),
        ('{"count": "' + "x" * 10_000 + '"}', r"\.\.\."),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
async def test_arguments_that_cannot_be_used_are_an_error_that_says_what_was_expected(
    text: str, message: str, context: ToolContext
) -> None:
    with pytest.raises(ToolError, match=message) as raised:
        await book.run(text, context)
    assert "'book'" in str(raised.value)
    assert len(str(raised.value)) < 600


@given(text=st.text() | st.from_regex(r'\{("[a-z]*": ?[-0-9a-z"\[\]{}.,]*,?)*\}', fullmatch=True))
def test_any_text_is_arguments_or_an_error_for_the_model(text: str) -> None:
    arguments = Arguments("t", (Argument(name="a", type=int | list[str] | None, default=None),))
    try:
        parsed = arguments.parse(text)
    except ToolError:
        return
    assert set(parsed) <= {"a"}


@dataclasses.dataclass
class Point:
    x: float


class Customer(BaseModel):
    name: str
    since: date
    score: float = 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, ""),
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        ((1, "x"), '[1,"x"]'),
        ({"é": 1}, '{"é":1}'),
        (Point(0.5), '{"x":0.5}'),
        (
            Customer(name="Ann", since=date(2026, 1, 2)),
            '{"name":"Ann","since":"2026-01-02","score":1.0}',
        ),
        (Decimal("1.10"), '"1.10"'),
        (Path("a/b"), '"a/b"'),
        (b"bytes that are text \xc3\xa9", "bytes that are text é"),
        (bytearray(b"ok"), "ok"),
        ({"raw": b"ok"}, '{"raw":"ok"}'),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        ([math.nan, math.inf], '["NaN","Infinity"]'),
        (Point(math.nan), '{"x":"NaN"}'),
        (
            Customer(name="Ann", since=date(2026, 1, 2), score=math.inf),
            '{"name":"Ann","since":"2026-01-02","score":"Infinity"}',
        ),
    ],
    ids=repr,
)
def test_results_become_text(value: Any, text: str) -> None:
    assert render_result(value, "t") == text


class Unknown: ...


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\xff\xfe\x00", "'t' returned 3 bytes that are not UTF-8 text"),
        ({"raw": b"\xff"}, "'t' returned a dict .*utf-8"),
        (Unknown(), "'t' returned an Unknown that cannot be written as JSON.*Unknown"),
        ([Unknown()], "'t' returned a list that cannot be written as JSON.*Unknown"),
        (print, "builtin_function_or_method"),
    ],
    ids=repr,
)
def test_a_result_that_is_no_text_is_an_error_that_names_it(value: Any, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        render_result(value, "t")


def test_a_result_that_holds_itself_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ToolError, match="Circular"):
        render_result(circle, "t")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_plain_values_give_valid_json(value: Any) -> None:
    text = render_result([value], "t")
    json.loads(text, parse_constant=lambda word: pytest.fail(word))
