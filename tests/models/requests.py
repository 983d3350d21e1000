"""Requests to ask models with."""

from collections.abc import Sequence
from typing import Any

from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ToolSet, ToolSpec


def a_request(*texts: str, tools: Sequence[ToolSpec] = ()) -> ModelRequest:
    """A conversation of a user who says the texts."""
    messages = [Message.user(text) for text in texts or ("hello",)]
    return ModelRequest(messages=messages, tools=ToolSet.of(tools))


def a_tool(name: str = "read_file", **properties: Any) -> ToolSpec:
    """A tool whose properties are all required."""
    properties = properties or {"path": {"type": "string"}}
    return ToolSpec(
        name=name,
        description=f"Does {name}.",
        parameters={"type": "object", "properties": properties, "required": list(properties)},
    )
