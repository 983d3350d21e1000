"""What the model server answers to all contenders."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers.conversations import AGENT
from harness_actors.testing import Reply

TAKEN, BROKEN = "All notes are taken.", "The tool does not work."


def script(body: Mapping[str, Any]) -> Reply:
    """Ask for the next note, or answer when all are taken.

    Where the tool came back with anything but its result, the conversation ends: then counts
    are missing, and a contender whose tool fails is not measured as one whose tool works.
    """
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    task = next(_text(message) for message in messages if message["role"] == "user")
    if "*" in task.split()[1]:
        return _delegating(task, messages, body["tools"])
    last = messages[-1]
    if last["role"] == "tool" and "noted" not in _text(last):
        return Reply.text(BROKEN)
    return lenient(body)


def _delegating(
    task: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Reply:
    """Delegate to all children in one message, and end when all of them have answered."""
    number, shape, path = task.split(" ", 2)
    rounds, _, children = shape.partition("*")
    told = [_text(message) for message in messages if message["role"] == "tool"]
    if told:
        whole = len(told) == int(children) and all(TAKEN in text for text in told)
        return Reply.text(TAKEN if whole else BROKEN)
    # Frameworks call the tool and what it takes by names of their own.
    tool = next(one["function"] for one in tools if one["function"]["name"] in (AGENT, "task"))
    names = set(tool["parameters"]["properties"])
    agent = {"subagent_type": AGENT} if "subagent_type" in names else {}
    (prompt,) = names & {"prompt", "input", "description"}
    tasks = [f"{number}.{child}of{children} {rounds} {path}" for child in range(int(children))]
    return Reply.calls([(tool["name"], {prompt: one, **agent}) for one in tasks])


def lenient(body: Mapping[str, Any]) -> Reply:
    """Ask for the next note, whatever came back: what is unknown is not asked for again."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    task = next(_text(message) for message in messages if message["role"] == "user")
    number, rounds, path = task.split(" ", 2)
    spoken = sum(message["role"] == "assistant" for message in messages)
    rounds, _, calls = rounds.partition("x")
    if spoken == int(rounds):
        return Reply.text(TAKEN)
    number, _, children = number.partition("of")
    line = f"conversation {number}, note {spoken}"
    if children:
        tree, _, child = number.partition(".")
        line = f"tree {tree}, note {spoken}.{child}" + f" of {children}" * (spoken == 0)
    if not calls:
        return Reply.call("note", {"path": path, "line": line})
    lines = [f"{line}.{call} of {calls}" for call in range(int(calls))]
    return Reply.calls([("note", {"path": path, "line": one}) for one in lines])


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
