"""An expert that repairs every task, as a function of the conversation.

It stands in for a model where the harness is to be shown and not the model. What it says next
depends on the conversation alone, so that it goes on where a killed process left off.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from examples.repair.build import Fix
from harness_actors.conversation import UNKNOWN_OUTCOME

ChatMessage = Mapping[str, Any]
"""A message of a Chat Completions request; its keys depend on its role."""

TASK_ID = re.compile(r"\bhumaneval-\d{3}\b")
TRY_IT = 'python -c "import solution"'


def expert_reply(messages: Sequence[ChatMessage], fixes: Mapping[str, Fix]) -> dict[str, Any]:
    """Decide the next assistant message.

    Args:
        messages: The messages of a Chat Completions request, oldest first; one of the user's names
            the task.
        fixes: The edit that repairs each task, by id, as in `fixes.json`.

    Returns:
        An assistant message that calls tools: to read both files, to edit, to try the import, to
        complete. After an edit whose outcome is unknown it looks at the file again.

    Raises:
        LookupError: No message of the user names a task of `fixes`.
    """
    task = named_task(messages, fixes)
    fix = fixes[task]
    unread = {"README.md", "solution.py"}
    repaired = tried = False
    for tool, arguments, result in calls_with_results(messages):
        known = UNKNOWN_OUTCOME not in result
        if tool == "read_file" and known:
            unread.discard(arguments["path"])
            if arguments["path"] == "solution.py":
                repaired = fix["new_text"] in result
        elif tool == "edit_file" and known:
            repaired = True
        elif tool == "edit_file":
            # It may be repaired or not; only the file can tell.
            unread.add("solution.py")
        elif tool == "run_command" and known:
            tried = True
    number = sum(len(message.get("tool_calls") or ()) for message in messages)
    if unread:
        return calling(number, *(("read_file", {"path": path}) for path in sorted(unread)))
    if not repaired:
        return calling(number, ("edit_file", {"path": "solution.py", **fix}))
    if not tried:
        return calling(number, ("run_command", {"command": TRY_IT}))
    return calling(number, ("work_complete", {"summary": f"Repaired the fault of {task}."}))


def named_task(messages: Sequence[ChatMessage], fixes: Mapping[str, Fix]) -> str:
    """The first task of `fixes` that the user names."""
    for message in messages:
        if message["role"] == "user":
            for name in TASK_ID.findall(str(message["content"])):
                if name in fixes:
                    return str(name)
    raise LookupError("no message of the user names a task that the expert knows")


def calls_with_results(
    messages: Sequence[ChatMessage],
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield tool, arguments and result text of every call that has a result, oldest first."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            calls[call["id"]] = (function["name"], json.loads(function["arguments"]))
        if message["role"] == "tool":
            yield *calls[message["tool_call_id"]], str(message["content"])


def calling(number: int, *calls: tuple[str, Mapping[str, object]]) -> dict[str, Any]:
    """An assistant message with these calls, the first of which is the conversation's nth."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for n, (tool, arguments) in enumerate(calls, number)
        ],
    }
