"""A part of a conversation as a model that is to summarize it is shown it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness_actors.messages import Message, ToolCall


def transcript(messages: Sequence[tuple[int, Message, ToolCall | None]], most_chars: int) -> str:
    """The messages, a JSON object a line: what is in one cannot look like another, or like a part
    of the question.

    Args:
        messages: With their positions and, of results, the calls they answer.
        most_chars: How much is shown of each text: more of its beginning than of its end.
    """
    lines = (json.dumps(_shown(*one, most_chars), ensure_ascii=False) for one in messages)
    # A lone surrogate is in no request.
    return "\n".join(lines).encode("utf-8", "replace").decode()


def _shown(at: int, message: Message, call: ToolCall | None, most_chars: int) -> dict[str, Any]:
    told: dict[str, Any] = {"id": f"m{at}", "role": message.role}
    if message.role == "tool":
        told |= {"tool": "" if call is None else call.name, "failed": bool(message.is_error)}
        return told | {"data": _part(message.text, most_chars)}
    if message.text:
        told["text"] = _part(message.text, most_chars)
    if message.tool_calls:
        told["calls"] = list(_calls(message.tool_calls, most_chars))
    return told


def _calls(calls: Sequence[ToolCall], most_chars: int) -> Iterator[dict[str, str]]:
    for call in calls:
        yield {"tool": call.name, "arguments": _part(call.arguments, most_chars)}


def _part(text: str, most_chars: int) -> str:
    left = len(text) - most_chars
    if left <= 0:
        return text
    tail = most_chars // 4
    return f"{text[: most_chars - tail]}[… {left:,} characters …]{text[len(text) - tail :]}"
