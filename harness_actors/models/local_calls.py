"""Tool calls of a model too small to make them: asked for by a schema, read from its answer.

llama.cpp holds an answer to a JSON schema strictly, while a model of this size seldom calls
a tool by itself. So the offered tools become one schema and the answer one call.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from harness_actors.messages import Message, ToolCall, encode_json
from harness_actors.ports import ModelResponse, ToolSpec

MAX_STRING_CHARS = 1000
MAX_ITEMS = 8
MAX_DEPTH = 6
"""Bounds of an answer: without them the model fills a string until it is cut."""

ENDING_TOOL = "work_complete"
"""Where it is offered, a run ends by it, and every answer is to be a call."""

ANSWER_NOW = '\nNow answer: {"answer": ...}'

_CUT_CALL = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)


def calls_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The schema of an answer that calls one of the tools.

    A plain answer, ``{"answer": "…"}``, is allowed where no tool ends the run.
    """
    choices = [
        _object(
            {"name": {"const": tool.name}, "arguments": bounded(tool.parameters, tool.parameters)}
        )
        for tool in tools
    ]
    if not _end_by_call(tools):
        choices.append(ANSWER_SCHEMA)
    return {"anyOf": choices}


def must_answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bool:
    """Whether a plain answer is due, and not another call.

    It is where one ends the run and the model has just made a call for the second time since
    the user spoke: a model of this size makes it again until it is stopped.
    """
    if _end_by_call(tools):
        return False
    made: list[tuple[str, str]] = []
    for message in messages:
        if message.role == "user":
            made.clear()
        elif message.role == "assistant":
            made += [(call.name, call.arguments) for call in message.tool_calls]
    return bool(made) and made[-1] in made[:-1]


def _end_by_call(tools: Sequence[ToolSpec]) -> bool:
    return any(tool.name == ENDING_TOOL for tool in tools)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


ANSWER_SCHEMA = _object({"answer": {"type": "string", "maxLength": MAX_STRING_CHARS}})


def bounded(schema: Any, root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """A schema that only finite values fit, written out without references.

    Args:
        schema: Any JSON schema; what is not understood of it is left out, since the tool
            checks its arguments itself.
        root: The schema in whose definitions references are looked up.
        depth: How deep `schema` lies in it.
    """
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {"type": "string", "maxLength": MAX_STRING_CHARS}
    if "$ref" in schema:
        return bounded(_definition(schema["$ref"], root), root, depth + 1)
    if "const" in schema or "enum" in schema:
        return {name: schema[name] for name in ("const", "enum") if name in schema}
    for several in ("anyOf", "oneOf", "allOf"):
        if choices := schema.get(several):
            # Of an allOf, one part is near enough: pydantic writes it with a single one.
            parts = choices[:1] if several == "allOf" else choices
            return {"anyOf": [bounded(part, root, depth + 1) for part in parts]}
    kind = schema.get("type")
    if isinstance(kind, list):
        return {"anyOf": [bounded({**schema, "type": one}, root, depth + 1) for one in kind]}
    match kind:
        case "object":
            return _bounded_object(schema, root, depth)
        case "array":
            items = bounded(schema.get("items", {}), root, depth + 1)
            return {"type": "array", "items": items, **_bounds(schema, "Items", MAX_ITEMS)}
        case "integer" | "number" | "boolean" | "null":
            return {"type": kind}
        case _:
            return {"type": "string", **_bounds(schema, "Length", MAX_STRING_CHARS)}


def _bounded_object(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if not properties:
        values = bounded(schema.get("additionalProperties"), root, depth + 1)
        return {"type": "object", "additionalProperties": values}
    return _object({name: bounded(properties[name], root, depth + 1) for name in _required(schema)})


def _required(schema: Mapping[str, Any]) -> list[str]:
    """The properties that are offered: a model of this size fills in nonsense for the others."""
    return [name for name in schema.get("required", ()) if name in schema.get("properties", ())]


def _bounds(schema: Mapping[str, Any], of: str, most: int) -> dict[str, int]:
    most = min(schema.get(f"max{of}", most), most)
    return {f"min{of}": min(schema.get(f"min{of}", 0), most), f"max{of}": most}


def _definition(reference: str, root: Mapping[str, Any]) -> Any:
    at: Any = root
    for name in reference.removeprefix("#/").split("/"):
        at = at.get(name) if isinstance(at, Mapping) else None
    return at


def tools_prompt(tools: Sequence[ToolSpec]) -> str:
    """What the model is told of the tools, in few words: its window is small."""
    lines = [
        f"- {tool.name}({', '.join(_required(tool.parameters))}): "
        f"{(tool.description.strip().splitlines() or [''])[0]}"
        for tool in tools
    ]
    return "\n".join(
        (
            'Answer with one JSON object that calls a tool: {"name": ..., "arguments": {...}}',
            "Tools:",
            *lines,
        )
    )


def prompt_messages(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[bytes]:
    """The conversation as the model is to read it, each message encoded.

    Its chat template knows neither calls nor results, so they become the text that it is
    to write itself, and the user's word. Where a plain answer ends the run, a result says how
    to give one: else a model of this size makes the same call until it is stopped.
    """
    after_result = "" if _end_by_call(tools) else ANSWER_NOW
    system = "\n\n".join([m.text for m in messages if m.role == "system"] + [tools_prompt(tools)])
    prompt = [Message.system(system).encoded]
    for message in messages:
        if message.role == "tool":
            prompt.append(Message.user(f"Result: {message.text}{after_result}").encoded)
        elif message.role == "assistant" and message.tool_calls:
            prompt.append(Message.assistant("\n".join(map(_as_text, message.tool_calls))).encoded)
        elif message.role != "system":
            prompt.append(message.encoded)
    return prompt


def _as_text(call: ToolCall) -> str:
    return f'{{"name": {encode_json(call.name).decode()}, "arguments": {call.arguments or "{}"}}}'


def read_call(response: ModelResponse, call_id: str) -> ModelResponse:
    """The answer with its text read as a call.

    An answer that was cut still becomes a call where its tool is known: its arguments are
    then no JSON, and the model is told so in place of a result.
    """
    text = response.text or ""
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        answer = None
    match answer:
        case {"name": str(name), "arguments": arguments}:
            call = ToolCall(call_id, name, encode_json(arguments).decode())
        case {"answer": str(said)}:
            return replace(response, text=said)
        case _:
            if not (cut := _CUT_CALL.fullmatch(text)):
                return response
            call = ToolCall(call_id, cut[1], cut[2])
    return replace(response, text=None, tool_calls=(call,))
