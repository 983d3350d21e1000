"""Tools as a schema, and answers to it as calls."""

from typing import Any

import jsonschema
import orjson
import pytest

from harness_actors.messages import Message, ToolCall
from harness_actors.models.local_calls import (
    MAX_ITEMS,
    MAX_STRING_CHARS,
    bounded,
    calls_schema,
    must_answer,
    prompt_messages,
    read_call,
)
from harness_actors.ports import ModelResponse, ToolSpec
from tests.models.requests import a_tool

COMPLETE = a_tool("work_complete", summary={"type": "string"})


def test_an_answer_is_a_call_where_a_tool_ends_the_run() -> None:
    schema = calls_schema([a_tool(), COMPLETE])

    jsonschema.validate({"name": "read_file", "arguments": {"path": "a"}}, schema)
    jsonschema.validate({"name": "work_complete", "arguments": {"summary": "done"}}, schema)
    for wrong in (
        {"answer": "hello"},
        {"name": "other", "arguments": {}},
        {"name": "read_file", "arguments": {}},
        {"name": "read_file", "arguments": {"path": "x" * (MAX_STRING_CHARS + 1)}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_an_answer_may_be_a_text_where_no_tool_ends_the_run() -> None:
    jsonschema.validate({"answer": "hello"}, calls_schema([a_tool()]))


def test_a_call_that_is_made_again_is_followed_by_an_answer() -> None:
    def call(path: str) -> list[Message]:
        calls = [ToolCall("1", "read_file", f'{{"path": "{path}"}}')]
        return [Message.assistant(None, calls), Message.tool_result("1", "text")]

    asked = Message.user("read")
    tools = [a_tool()]
    assert not must_answer([asked], tools)
    assert not must_answer([asked, *call("a")], tools)
    assert not must_answer([asked, *call("a"), *call("b")], tools)
    assert must_answer([asked, *call("a"), *call("b"), *call("a")], tools)
    assert not must_answer([asked, *call("a"), asked, *call("a")], tools)
    assert not must_answer([asked, *call("a"), *call("a")], [*tools, COMPLETE]), "a call ends it"


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"type": "string", "pattern": "^a"}, {"minLength": 0, "maxLength": MAX_STRING_CHARS}),
        ({"type": "string", "maxLength": 5, "minLength": 9}, {"minLength": 5, "maxLength": 5}),
        ({"type": "array", "items": {"type": "integer"}}, {"maxItems": MAX_ITEMS}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({"const": 3}, {"const": 3}),
        ({"$ref": "#/$defs/Line"}, {"type": "integer"}),
        ({"allOf": [{"$ref": "#/$defs/Line"}]}, {"anyOf": [{"type": "integer"}]}),
        ({"type": ["integer", "null"]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ({"$ref": "#/$defs/Missing"}, {"type": "string"}),
        ({}, {"type": "string"}),
    ],
)
def test_every_value_is_bounded(schema: dict[str, Any], becomes: dict[str, Any]) -> None:
    found = bounded(schema, {"$defs": {"Line": {"type": "integer", "minimum": 1}}})

    assert becomes.items() <= found.items()


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}},
        "required": ["next"],
    }

    assert len(orjson.dumps(bounded({"$ref": "#/$defs/Node"}, {"$defs": {"Node": node}}))) < 2000


def test_only_required_arguments_are_offered() -> None:
    tool = ToolSpec(
        name="list_directory",
        description="",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    )

    jsonschema.validate({"name": "list_directory", "arguments": {}}, calls_schema([tool]))


def test_calls_and_results_of_the_past_become_text() -> None:
    messages = [
        Message.system("Be brief."),
        Message.user("Go."),
        Message.assistant(None, [ToolCall("c", "read_file", '{"path":"a"}')]),
        Message.tool_result("c", "x = 1"),
    ]

    prompt = [orjson.loads(encoded) for encoded in prompt_messages(messages, [a_tool()])]

    assert [message["role"] for message in prompt] == ["system", "user", "assistant", "user"]
    assert prompt[0]["content"].startswith("Be brief.")
    assert "read_file(path)" in prompt[0]["content"]
    assert orjson.loads(prompt[2]["content"]) == {"name": "read_file", "arguments": {"path": "a"}}
    assert "x = 1" in prompt[3]["content"]


def test_a_result_says_how_to_answer_only_where_an_answer_ends_the_run() -> None:
    call = Message.assistant(None, [ToolCall("c", "read_file", '{"path":"a"}')])
    messages = [Message.user("Go."), call, Message.tool_result("c", "x = 1")]

    ends_by_answer = orjson.loads(prompt_messages(messages, [a_tool()])[-1])
    ends_by_call = orjson.loads(prompt_messages(messages, [a_tool(), COMPLETE])[-1])

    assert ends_by_answer["content"] == 'Result: x = 1\nNow answer: {"answer": ...}'
    assert ends_by_call["content"] == "Result: x = 1"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('{"name": "f", "arguments": {"a": 1}}', ToolCall("c", "f", '{"a":1}')),
        ('{"name":"f","arguments":{"a": "never end', ToolCall("c", "f", '{"a": "never end')),
        ('{"name":"f","arguments":', ToolCall("c", "f", "")),
    ],
)
def test_an_answer_becomes_a_call_even_if_it_was_cut(text: str, call: ToolCall) -> None:
    response = read_call(ModelResponse(text=text), "c")

    assert response.tool_calls == (call,)
    assert response.text is None


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"answer": "hello"}', "hello"), ('{"name": "f', '{"name": "f'), ("[1]", "[1]")],
)
def test_an_answer_that_is_no_call_is_text(text: str, said: str) -> None:
    response = read_call(ModelResponse(text=text), "c")

    assert (response.text, response.tool_calls) == (said, ())
