"""Schemas in the form that strict modes take: closed, and never narrower than what fits."""

import json
from enum import Enum
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from harness_actors.models import OpenAIModel
from harness_actors.models.chain import ModelChain
from harness_actors.outputs import OutputType
from harness_actors.outputs.strict import strict_form, strict_schema
from harness_actors.ports import Model, StrictForm, ToolSet
from harness_actors.testing import ScriptedModel
from tests.outputs.forms import SCHEMA, Place, Report


class Colour(Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    colour: Colour | None = None


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int = Field(default=1, ge=0, description="In years.")


class Node(BaseModel):
    name: str = Field(min_length=1)
    pet: Cat | Dog = Field(discriminator="kind", description="Its own.")
    below: list["Node"] = []


def schema_of(given: Any) -> Any:
    found = OutputType.of(given)
    assert found is not None
    return found.schema


def objects(part: Any) -> list[dict[str, Any]]:
    """All parts that are schemas of objects."""
    if isinstance(part, list):
        return [one for item in part for one in objects(item)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "object" else []
    return own + [one for item in part.values() for one in objects(item)]


@pytest.mark.parametrize("given", [Report, Place, Node, Cat, SCHEMA])
def test_all_that_is_there_is_required_and_nothing_else_allowed(given: Any) -> None:
    made = strict_schema(schema_of(given))
    assert made is not None
    Draft202012Validator.check_schema(made)
    for part in objects(made):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    text = json.dumps(made)
    for word in ('"default"', "oneOf", "discriminator", "minLength"):
        assert word not in text


def test_what_a_strict_model_says_fits_the_type() -> None:
    made = strict_schema(schema_of(Node))
    value = {
        "name": "a",
        "pet": {"kind": "dog", "age": 2},
        "below": [{"name": "b", "pet": {"kind": "cat", "colour": None}, "below": []}],
    }
    Draft202012Validator(made or False).validate(value)
    Node.model_validate(value)


def test_a_name_stands_alone() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "One."},
            "b": {"$ref": "#/$defs/A"},
        },
        "$defs": {"A": {"type": "integer"}},
    }
    made = strict_schema(schema)
    assert made is not None
    assert made["properties"]["a"] == {"type": "integer", "description": "One."}
    assert made["properties"]["b"] == {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"type": "integer", "not": {"const": 1}}}},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{}]}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "if": {}, "then": {}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "null"}}},
        {"type": "object", "properties": {str(n): {"type": "null"} for n in range(5_001)}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
    ],
)
def test_what_cannot_be_said_in_strict_mode_is_not(schema: Any) -> None:
    assert strict_schema(schema) is None


def test_bounds_that_strict_mode_knows_are_kept() -> None:
    one = {"type": "string", "pattern": "^[a-z]+$", "format": "date", "maxLength": 3}
    other = {"type": "string", "pattern": "(?i)a", "format": "iri"}
    made = strict_schema({"type": "object", "properties": {"a": one, "b": other}})
    assert made is not None
    assert made["properties"]["a"] == {"type": "string", "pattern": "^[a-z]+$", "format": "date"}
    assert made["properties"]["b"] == {"type": "string"}


def form_of(given: Any, model: Model, completion: str | None) -> StrictForm | None:
    output = OutputType.of(given)
    assert output is not None
    tools = ToolSet.of([output.completion(checked=False).spec] if completion else [])
    return strict_form(output, model, tools, completion)


HOLDS = OpenAIModel("holds", base_url="http://127.0.0.1:1/v1", structured_output=True)
HOLDS_NOT = OpenAIModel("holds-not", base_url="http://127.0.0.1:1/v1")


def test_who_has_a_strict_mode_is_a_setting_of_the_model() -> None:
    assert OpenAIModel("x", base_url="https://api.openai.com/v1/").structured_output
    assert not HOLDS_NOT.structured_output
    assert HOLDS.changed(base_url="http://127.0.0.1:2/v1").structured_output
    off = OpenAIModel("x", base_url="https://api.openai.com/v1", structured_output=False)
    assert not off.structured_output
    assert form_of(Report, HOLDS_NOT, None) is None
    assert form_of(Report, ScriptedModel([]), "work_complete") is None
    assert form_of(Report, ModelChain([HOLDS_NOT, HOLDS]), None) is not None


def test_an_answer_is_asked_for_by_its_schema() -> None:
    form = form_of(Report, HOLDS, None)
    assert form is not None
    assert form.response_format is not None
    asked = json.loads(form.response_format)
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["name"] == "Report"
    assert asked["json_schema"]["strict"] is True
    assert asked["json_schema"]["schema"]["additionalProperties"] is False


def test_what_is_not_strict_is_asked_for_as_it_is_and_what_is_no_object_not_at_all() -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    form = form_of(free, HOLDS, None)
    assert form is not None
    assert form.response_format is not None
    asked = json.loads(form.response_format)["json_schema"]
    assert (asked["strict"], asked["schema"]) == (False, free)
    none = form_of(list[int], HOLDS, None)
    assert none == StrictForm()


def test_the_tool_that_takes_a_value_is_strict_alone() -> None:
    form = form_of(list[Report], HOLDS, "work_complete")
    assert form is not None
    assert form.tools is not None
    (spec,) = form.tools.specs
    assert spec.strict
    assert b'"strict":true' in form.tools.encoded
    assert form_of(dict[str, int], HOLDS, "work_complete") is None
