"""What a person gives as arguments is looked at by the schema that a provider was sent."""

import time
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.coordination.edits import MOST_CHECKS, schema_problem
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
LONG = "a" * 60 + "!"
GOOD: dict[str, Any] = {"customer": "c", "lines": [{"sku": "x", "count": 2}, {"sku": "y"}]}


@pytest.mark.parametrize(
    "more", [{}, {"usd": 3}, {"express": True}, {"by": "air"}, {"note": None}, {"note": "n"}]
)
def test_what_its_tool_takes_breaks_nothing(more: dict[str, Any]) -> None:
    assert schema_problem(SCHEMA, {**GOOD, **more}) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"customer": 7}, "$.customer: must be of type 'string', not 7"),
        ({"usd": "3"}, "$.usd: must be of type 'number', not '3'"),
        ({"usd": True}, "$.usd: must be of type 'number', not True"),
        ({"express": 1}, "$.express: must be of type 'boolean', not 1"),
        ({"by": "sea"}, "$.by: 'sea' breaks 'enum', which is ['road', 'air']"),
        (
            {"note": 7},
            "$.note: must be of type 'string', not 7, or $.note: must be of type 'null', not 7",
        ),
        ({"price": 7}, "$: there may be no 'price'"),
        ({"lines": {}}, "$.lines: must be of type 'array', not an object"),
        ({"lines": [{"sku": "x"}, {}]}, "$.lines[1]: 'sku' is missing"),
        (
            {"lines": [{"sku": "x", "count": 1.5}]},
            "$.lines[0].count: must be of type 'integer', not 1.5",
        ),
    ],
)
def test_what_breaks_it_is_named(changed: dict[str, Any], said: str) -> None:
    assert schema_problem(SCHEMA, {**GOOD, **changed}) == said


def test_what_is_missing_is_named() -> None:
    assert schema_problem(SCHEMA, {"customer": "c"}) == "$: 'lines' is missing"


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"minimum": 1}, 0, "$.x: 0 breaks 'minimum', which is 1"),
        ({"maximum": 1}, 2, "$.x: 2 breaks 'maximum', which is 1"),
        ({"exclusiveMinimum": 1}, 1, "$.x: 1 breaks 'exclusiveMinimum', which is 1"),
        ({"exclusiveMaximum": 1}, 1, "$.x: 1 breaks 'exclusiveMaximum', which is 1"),
        ({"minLength": 2}, "a", "$.x: 'a' breaks 'minLength', which is 2"),
        ({"maxItems": 1}, [1, 2], "$.x: [1, 2] breaks 'maxItems', which is 1"),
        ({"const": 1}, True, "$.x: True breaks 'const', which is 1"),
        ({"type": ["string", "null"]}, 7, "$.x: must be of type ['string', 'null'], not 7"),
        ({"allOf": [{"type": "number"}, {"minimum": 3}]}, 2, "$.x: 2 breaks 'minimum', which is 3"),
        ({"type": "strange"}, 7, ""),
        ({"$ref": "#/$defs/nowhere"}, 7, ""),
        ({"$ref": "http://127.0.0.1:9/elsewhere"}, 7, ""),
        ({"multipleOf": 0.5}, 10**400, ""),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 7.0, ""),
    ],
)
def test_bounds_and_alternatives(schema: Any, value: Any, said: str) -> None:
    assert schema_problem({"properties": {"x": schema}}, {"x": value}) == said


@pytest.mark.parametrize("named", [7, [1], {}, "http://json-schema.org/draft-07/schema#"])
def test_a_schema_of_another_dialect_is_read_as_one_of_ours(named: Any) -> None:
    schema = {"$schema": named, "properties": {"x": {"type": "string"}}}
    assert schema_problem(schema, {"x": 7}) == "$.x: must be of type 'string', not 7"


def test_a_schema_that_refers_to_itself_is_left_to_the_tool() -> None:
    ring = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert schema_problem(ring, {"x": 1}) == ""
    part = {"$ref": "#/$defs/t"}
    tree = {"anyOf": [{"properties": {"c": part, "n": {"type": "string"}}} for _ in range(8)]}
    deep: dict[str, Any] = {"n": 1}
    for _ in range(25):
        deep = {"c": deep, "n": 1}
    assert schema_problem({"$defs": {"t": tree}, "properties": {"x": part}}, {"x": deep}) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False},
        {"additionalProperties": {"pattern": "(a+)+$"}},
        {"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False},
        {"properties": {LONG: {"$schema": "http://json-schema.org/draft-07/schema#"}}},
    ],
)
def test_a_pattern_that_never_ends_is_left_to_the_tool(schema: Any) -> None:
    began = time.perf_counter()
    assert schema_problem(schema, {LONG: LONG}) == ""
    assert time.perf_counter() - began < 5


def test_how_long_everybody_waits_for_it_is_bounded() -> None:
    ways = [{"type": "string", "minLength": 1}] * 19
    items = {"items": {"anyOf": [*ways, {"type": "string"}]}}
    given = {"x": [""] * MOST_CHECKS}
    began = time.perf_counter()
    assert schema_problem({"properties": {"x": items}}, given) == ""
    assert time.perf_counter() - began < 5


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
    "multipleOf",
    "$schema",
    "$id",
)


@given(st.dictionaries(st.sampled_from(WORDS), PLAIN), st.dictionaries(st.text(max_size=3), PLAIN))
def test_no_schema_and_no_arguments_are_too_strange(schema: Any, arguments: Any) -> None:
    assert isinstance(schema_problem(schema, arguments), str)
