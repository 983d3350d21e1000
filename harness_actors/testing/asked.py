"""What a client says in a request for a chat completion, as a model server reads it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness_actors.testing.checkable import CheckableTask


def is_message(message: Any) -> bool:
    """Whether it has a role, and a text or parts as content."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    if isinstance(content, list):
        return all(isinstance(part, dict) for part in content)
    return content is None or isinstance(content, str)


def text_of(message: Mapping[str, Any]) -> str:
    """What it says, without parts that are no text."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def offered_in(body: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that may be called."""
    functions = (tool.get("function") for tool in body.get("tools", []))
    names = (function.get("name") for function in functions if isinstance(function, dict))
    return frozenset(name for name in names if isinstance(name, str))


def told_to(messages: list[dict[str, Any]], task: CheckableTask) -> list[tuple[str, str]]:
    """Role and text of what came since the model spoke last, without the task itself."""
    told: list[tuple[str, str]] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        # The task names all files: to hear it again is to be told nothing.
        told.append((message["role"], text_of(message).replace(task.prompt, "")))
    return told


def names_any(text: str, files: Iterable[str]) -> bool:
    """Whether it has the name of a file, and not of one that only ends or begins so."""
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?!\w)", text) for name in files)
