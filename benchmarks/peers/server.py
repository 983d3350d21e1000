"""What the model server answers to all contenders."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.testing import Reply


def script(body: Mapping[str, Any]) -> Reply:
    """Ask for the next note, or answer when all are taken.

    Where the tool came back with anything but its result, the conversation ends: then counts
    are missing, and a contender whose tool fails is not measured as one whose tool works.
    """
    last = body["messages"][-1]
    if last["role"] == "tool" and "noted" not in _text(last):
        return Reply.text("The tool does not work.")
    return lenient(body)


def lenient(body: Mapping[str, Any]) -> Reply:
    """Ask for the next note, whatever came back: what is unknown is not asked for again."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    task = next(_text(message) for message in messages if message["role"] == "user")
    number, rounds, path = task.split(" ", 2)
    spoken = sum(message["role"] == "assistant" for message in messages)
    rounds, _, calls = rounds.partition("x")
    if spoken == int(rounds):
        return Reply.text("All notes are taken.")
    line = f"conversation {number}, note {spoken}"
    if not calls:
        return Reply.call("note", {"path": path, "line": line})
    lines = [f"{line}.{call} of {calls}" for call in range(int(calls))]
    return Reply.calls([("note", {"path": path, "line": one}) for one in lines])


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
