"""What a person gives as arguments is looked at by the schema that a provider was sent."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.policies.argument_schema import schema_problem
from harness_actors.tools import tool


@dataclass
class Line:
    """A line of an order."""

    sku: str
    count: int = 1


@tool
async def order(
    customer: str,
    lines: list[Line],
    usd: float = 1.0,
    express: bool = False,
    by: Literal["road", "air"] = "road",
    note: str | None = None,
) -> str:
    """Order something."""
    return customer


SCHEMA = order.spec.parameters
GOOD: dict[str, Any] = {"customer": "c", "lines": [{"sku": "x", "count": 2}, {"sku": "y"}]}


@pytest.mark.parametrize(
    "more", [{}, {"usd": 3}, {"express": True}, {"by": "air"}, {"note": None}, {"note": "n"}]
)
def test_what_its_tool_takes_breaks_nothing(more: dict[str, Any]) -> None:
    assert schema_problem(SCHEMA, {**GOOD, **more}) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"customer": 7}, "customer must be a text, not 7"),
        ({"usd": "3"}, "usd must be a number, not '3'"),
        ({"usd": True}, "usd must be a number, not True"),
        ({"express": 1}, "express must be true or false, not 1"),
        ({"by": "sea"}, "by must be one of 'road', 'air', not 'sea'"),
        ({"note": 7}, "note must be a text, not 7"),
        ({"price": 7}, "there is no price; there are customer, lines, usd, express, by, note"),
        ({"lines": {}}, "lines must be a list, not {}"),
        ({"lines": [{"sku": "x"}, {}]}, "lines[1].sku is missing"),
        ({"lines": [{"sku": "x", "count": 1.5}]}, "lines[0].count must be a whole number, not 1.5"),
    ],
)
def test_what_breaks_it_is_named(changed: dict[str, Any], said: str) -> None:
    assert schema_problem(SCHEMA, {**GOOD, **changed}) == said


def test_what_is_missing_is_named() -> None:
    assert schema_problem(SCHEMA, {"customer": "c"}) == "lines is missing"


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"minimum": 1}, 0, "x must be at least 1, not 0"),
        ({"maximum": 1}, 2, "x must be at most 1, not 2"),
        ({"exclusiveMinimum": 1}, 1, "x must be above 1, not 1"),
        ({"exclusiveMaximum": 1}, 1, "x must be below 1, not 1"),
        ({"minLength": 2}, "a", "x must be at least 2 characters, not 1"),
        ({"maxItems": 1}, [1, 2], "x must be at most 1 items, not 2"),
        ({"const": 1}, True, "x must be one of 1, not True"),
        ({"type": ["string", "null"]}, 7, "x must be a text or null, not 7"),
        ({"allOf": [{"type": "number"}, {"minimum": 3}]}, 2, "x must be at least 3, not 2"),
        ({"type": "strange"}, 7, ""),
        ({"$ref": "#/$defs/nowhere"}, 7, ""),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 7.0, ""),
    ],
)
def test_bounds_and_alternatives(schema: Any, value: Any, said: str) -> None:
    assert schema_problem({"properties": {"x": schema}}, {"x": value}) == said


def test_a_schema_that_refers_to_itself_is_left_to_the_tool() -> None:
    ring = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert schema_problem(ring, {"x": 1}) == ""
    part = {"$ref": "#/$defs/t"}
    tree = {"anyOf": [{"properties": {"c": part, "n": {"type": "string"}}} for _ in range(8)]}
    deep: dict[str, Any] = {"n": 1}
    for _ in range(25):
        deep = {"c": deep, "n": 1}
    assert schema_problem({"$defs": {"t": tree}, "properties": {"x": part}}, {"x": deep}) == ""


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
WORDS = (
    "type",
    "properties",
    "items",
    "anyOf",
    "required",
    "minimum",
    "enum",
    "$ref",
    "additionalProperties",
)


@given(st.dictionaries(st.sampled_from(WORDS), PLAIN), st.dictionaries(st.text(max_size=3), PLAIN))
def test_no_schema_and_no_arguments_are_too_strange(schema: Any, arguments: Any) -> None:
    assert isinstance(schema_problem(schema, arguments), str)
