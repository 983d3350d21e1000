"""What may be an output type, what fits it, and how it travels."""

import json
import pickle
from collections.abc import Mapping
from threading import Lock
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.errors import AgentCodeError, ConfigError, ToolError
from harness_actors.outputs import OutputCodeError, OutputType, json_in, value_of
from harness_actors.outputs import output_type as module
from harness_actors.testing import ScriptedModel
from tests.outputs.forms import SCHEMA, Faulty, Place, Report, Slow


def form(given: Any) -> OutputType:
    found = OutputType.of(given)
    assert found is not None
    return found


async def at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


async def in_thread(function: Any, *arguments: Any) -> Any:
    import asyncio

    return await asyncio.to_thread(function, *arguments)


@pytest.mark.parametrize(
    ("given", "text", "told"),
    [
        (Report, '{"total": 4}', ""),
        (Report, '{"total": 3}', "output.total: Value error, a total is even, got 3"),
        (Report, '{"lines": [{}]}', "output.total: required, but left out"),
        (Report, '{"lines": [{}], "total": 2}', "output.lines.0.name: required"),
        (Report, "[1]", "output: "),
        (Report, '{"total": 4, "total": 6}', "given twice"),
        (Report, '{"total": 4}, "more": 1', "it is not JSON"),
        (Report, "four", "it is not JSON"),
        (Report, '{"total": NaN}', "NaN is no JSON value"),
        (Report, '{"total": 4, "x": 1e999}', "too large"),
        (Place, '{"city": "Rome", "near": [{"city": "Ostia"}]}', ""),
        (Place, '{"city": "Rome", "near": [{"people": 1}]}', "output.near.0.city"),
        (list[Place], '[{"city": "Rome"}]', ""),
        (list[Place], '{"city": "Rome"}', "valid array"),
        (int | None, "null", ""),
        (SCHEMA, '{"total": 1}', ""),
        (SCHEMA, '{"total": -1}', "output.total: -1 breaks 'minimum', which is 0"),
        (SCHEMA, '{"total": 1, "x": 2}', "there may be no 'x'"),
        (SCHEMA, "{}", "output: 'total' is missing"),
        (SCHEMA, '{"total": 1e400}', "too large"),
        (SCHEMA, f'{{"total": {1 << 70}}}', "63 bits"),
        ({"type": "string"}, r'"\ud800"', "no valid Unicode"),
        ({"type": "array"}, "[" * 200 + "]" * 200, "100 levels"),
        ({"type": "string", "pattern": "^a+$"}, '"aaa"', ""),
        ({"type": "string", "pattern": "^a+$"}, '"b"', "breaks 'pattern'"),
        ({"type": "string"}, '"' + "x" * 200_000 + '"', ""),
        ({"type": "string"}, '"' + "x" * 2_000_000 + '"', "and may have 1,048,576"),
    ],
)
async def test_a_value_fits_or_it_is_said_in_what_not(given: Any, text: str, told: str) -> None:
    problem = await form(given).problem(text, at_once)
    assert (problem == "") == (told == "")
    assert told in problem


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "must be a pydantic model"),
        ("tests.outputs.forms:Report", "must be a pydantic model"),
        (Place("Rome"), "must be a pydantic model"),
        (len, "must be a pydantic model"),
        (str, "leave it out"),
        (ScriptedModel, "has no JSON schema"),
        (dict[Place, int], "keys of Place"),
        ({}, "says nothing of a value"),
        ({"name": "x", "schema": {"type": "object"}}, "no type, properties"),
        ({"type": "objekt"}, "is no JSON schema"),
        ({"type": "string", "pattern": "(a+)+"}, "pattern"),
        ({"$ref": "https://example.com/x.json"}, "nothing is fetched"),
        ({"$ref": "#/$defs/Gone"}, "the schema has no"),
        ({"type": "object", "default": {1, 2}}, "must be a JSON schema"),
    ],
)
def test_what_is_no_type_is_refused_before_anything_runs(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=r"^output_type") as refused:
        ChatAgent(model=ScriptedModel([]), output_type=given)
    assert told in str(refused.value)


def test_a_type_that_cannot_travel_is_named() -> None:
    class Stuck(type):
        def __reduce_ex__(cls, protocol: Any) -> Any:
            raise TypeError("stuck")

    agent = ChatAgent(model=ScriptedModel([]), output_type=Report)
    stuck = OutputType.of(Report)
    object.__setattr__(stuck, "names", {"x": Lock()})
    object.__setattr__(agent, "output_type", stuck)
    with pytest.raises(AgentCodeError, match="the output type"):
        _ = Program.of(agent).blob


@pytest.mark.parametrize("given", [Report, Place, SCHEMA])
async def test_a_type_is_the_same_when_it_has_travelled(given: Any) -> None:
    before = form(given)
    again = pickle.loads(pickle.dumps(before))
    assert again == before
    assert again.schema == before.schema
    assert again.parameters == before.parameters


def test_of_what_was_given_nothing_that_is_changed_later_counts() -> None:
    schema = json.loads(json.dumps(SCHEMA))
    held = form(schema)
    schema["properties"].clear()
    assert held.schema == SCHEMA


def test_an_instance_is_made_of_what_fits() -> None:
    place = form(Place).instance({"city": "Rome", "near": [{"city": "Ostia"}]})
    assert place == Place("Rome", 0, [Place("Ostia")])
    assert form(SCHEMA).instance({"total": 1}) == {"total": 1}
    with pytest.raises(ToolError):
        form(Place).instance({"people": 1})


async def test_code_that_fails_is_told_from_a_value_that_does_not_fit() -> None:
    with pytest.raises(OutputCodeError) as failed:
        await form(Faulty).problem('{"total": 13}', at_once)
    assert isinstance(failed.value.__cause__, KeyError)
    assert await form(Faulty).problem('{"total": "x"}', at_once)


async def test_code_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.05)
    with pytest.raises(OutputCodeError) as failed:
        await form(Slow).problem('{"seconds": 0.5}', in_thread)
    assert "longer than 0.05 s" in str(failed.value.__cause__)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('Here:\n```\n{"a": 1}\n```\nThat is all.', '{"a": 1}'),
        ('"```json\\n1\\n```"', '"```json\\n1\\n```"'),
        ("```json\n1\n```\n```json\n2\n```", None),
        ("```json\n1", None),
        ("words", None),
    ],
)
def test_a_fenced_block_is_taken_for_the_value_where_there_is_one(
    text: str, found: str | None
) -> None:
    assert json_in(text) == (text if found is None else found)
    if found is None:
        with pytest.raises(ToolError):
            value_of(json_in(text))


async def read(given: Any, arguments: Mapping[str, Any] | str) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return await form(given).read_arguments(text, at_once)


@pytest.mark.parametrize("given", [Report, SCHEMA])
async def test_the_tool_that_ends_a_run_takes_summary_and_value(given: Any) -> None:
    assert await read(given, {"summary": "all", "output": {"total": 2}}) == "all"
    with pytest.raises(ToolError, match="output: required, but left out"):
        await read(given, {"summary": "all"})
    with pytest.raises(ToolError, match="summary: required"):
        await read(given, {"output": {"total": 2}})
    with pytest.raises(ToolError, match=r"output\.total"):
        await read(given, {"summary": "all", "output": {"total": -2}})
    with pytest.raises(ToolError, match="63 bits"):
        await read(given, f'{{"summary": "all", "output": {{"total": {1 << 70}}}}}')
    with pytest.raises(ToolError, match="no such argument"):
        await read(given, {"summary": "all", "output": {"total": 2}, "x": 1})


def test_a_schema_stays_whole_where_it_is_an_argument() -> None:
    tree = {
        "type": "object",
        "properties": {
            "down": {"$ref": "#"},
            "leaf": {"$ref": "#/$defs/Leaf"},
            "same": {"$ref": "#/properties/leaf"},
            "$ref": {"const": {"$ref": "#"}},
            "default": {"$ref": "#"},
        },
        "$defs": {"Leaf": {"type": "integer"}},
    }
    parameters = form(tree).parameters
    part = parameters["properties"]["output"]["properties"]
    assert parameters["$defs"] == tree["$defs"]
    assert part["down"] == {"$ref": "#/properties/output"}
    assert part["leaf"] == {"$ref": "#/$defs/Leaf"}
    assert part["same"] == {"$ref": "#/properties/output/properties/leaf"}
    assert part["$ref"] == {"const": {"$ref": "#"}}
    assert part["default"] == {"$ref": "#/properties/output"}
