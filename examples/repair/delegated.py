"""The expert where it knows no fix: it has `explore` find one out, and writes what that answers.

Both are functions of their conversation alone. Who explores searches the archive with its tools,
compares what it reads, and says which lines differ. Who repairs takes its edit from that answer,
and has it from nowhere else.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from examples.repair.build import Fix, smallest_fix
from examples.repair.expert import TASK_ID, ChatMessage, calling, calls_with_results, expert_reply

MODEL = "expert-delegated"
EXPLORE = "explore"
SOLUTION = "solution.py"
QUESTION = (
    "In {solution} the function `{function}` has a fault. Somewhere below archive/ is how it was "
    "before. Find it, and say which lines of {solution} differ, as they are and as they were."
)
ANSWER = """\
{path} has it as it was. In {solution} these lines differ.
They are:
{is_now}
They were:
{was}"""

_FUNCTION = re.compile(r"function `(\w+)`")
_DIFFER = re.compile(r"^They are:\n(.*)\nThey were:\n(.*)\Z", re.DOTALL | re.MULTILINE)
_FOUND = re.compile(r"^archive/\S+$", re.MULTILINE)


def delegated_reply(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The next assistant message.

    Args:
        messages: As of `expert_reply`.
        tools: Those of the request: who can delegate repairs, who cannot explores.
    """
    if any(tool["function"]["name"] == EXPLORE for tool in tools):
        return _repair(messages)
    return _explore(messages)


def _repair(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    task = _asked(messages)
    answers = [text for tool, _, text in calls_with_results(messages) if tool == EXPLORE]
    if fix := _fix_in(answers):
        (name,) = set(TASK_ID.findall(task))
        return expert_reply(messages, {name: fix})
    # Of one that was lost nothing is known: another one is sent.
    question = QUESTION.format(solution=SOLUTION, function=_function_in(task))
    return calling(_calls(messages), (EXPLORE, {"prompt": question}))


def _fix_in(answers: Sequence[str]) -> Fix | None:
    """The edit that an answer comes to; None where none says which lines differ."""
    for answer in answers:
        if differ := _DIFFER.search(answer):
            return Fix(old_text=differ[1], new_text=differ[2])
    return None


def _explore(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    function, number = _function_in(_asked(messages)), _calls(messages)
    read: dict[str, str] = {}
    found: list[str] = []
    for tool, arguments, result in calls_with_results(messages):
        if tool == "grep_files":
            found = _FOUND.findall(result)
        elif tool == "read_file":
            read[arguments["path"]] = result
    if SOLUTION not in read:
        search = {"pattern": rf"^def {function}\(", "path": "archive"}
        return calling(number, ("grep_files", search), ("read_file", {"path": SOLUTION}))
    if not found:
        return _saying(f"No module below archive/ has `{function}`.")
    (path,) = found
    if path not in read:
        return calling(number, ("read_file", {"path": path}))
    fix = _difference(read[SOLUTION], read[path], function)
    if fix is None:
        return _saying(f"`{function}` in {path} is as it is in {SOLUTION}.")
    is_now, was = fix["old_text"], fix["new_text"]
    return _saying(ANSWER.format(path=path, solution=SOLUTION, is_now=is_now, was=was))


def _difference(now: str, archived: str, function: str) -> Fix | None:
    """The edit that makes a function what it was; None where nothing differs."""
    lines, kept = now.splitlines(), archived.splitlines()
    start, stop = _span(now, function)
    first, last = _span(archived, function)
    before = "\n".join([*lines[:start], *kept[first:last], *lines[stop:]]) + "\n"
    return None if before.splitlines() == lines else smallest_fix(now, before)


def _span(source: str, function: str) -> tuple[int, int]:
    """The lines of a function at the top level of a module, counted from 0."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return node.lineno - 1, node.end_lineno or node.lineno
    raise LookupError(f"no function {function!r} at the top level")


def _asked(messages: Sequence[ChatMessage]) -> str:
    return next(str(message["content"]) for message in messages if message["role"] == "user")


def _function_in(text: str) -> str:
    named = _FUNCTION.search(text)
    if named is None:
        raise LookupError("nobody names a function")
    return named[1]


def _calls(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.get("tool_calls") or ()) for message in messages)


def _saying(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}
