"""Calls that wait for approval, and decisions on them, as a person is shown them."""

import json
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from harness_actors.printing.plain import escaped, one_line

MOST_LINES = 60
"""Of the arguments of one call, where not all of them are shown."""
MOST_OF_ONE = 12
"""Of one argument: what follows a long one is to be seen, too."""
MOST_CHARS = 400
"""Of one of these lines."""
BRIEF_CHARS = 80


def asked_line(number: str, path: str, text: str) -> str:
    """The first line of a question, or of a call to decide about.

    Args:
        number: Its id.
        path: Who asks below the run; empty for the run itself.
        text: What is asked.

    >>> asked_line("1.q1", "critic/explore", "May write_file be called?")
    '1.q1 (critic/explore asks): May write_file be called?'
    """
    who = f" ({one_line(path)} asks)" if path else ""
    return f"{number}{who}: {one_line(text)}"


def call_lines(tool: str, arguments: object, *, whole: bool = False) -> Iterator[str]:
    r"""A call, an argument a line, and a text of several lines line by line.

    Args:
        tool: The tool.
        arguments: What it is called with, by name; or the JSON of that.
        whole: All of it; else at most `MOST_LINES`, and it is said what is left out.

    >>> list(call_lines("sh", {"script": "cd x\nls", "times": 1}))
    ['sh(', '    script:', '      | cd x', '      | ls', '    times: 1', ')']
    """
    given = plain_arguments(arguments)
    if given == {}:
        yield f"{one_line(tool)}()"
        return
    yield f"{one_line(tool)}("
    each = map(list, _argument_lines(given))
    lines = (line for one in each for line in (one if whole else _cut_argument(one)))
    for line in lines if whole else islice(lines, MOST_LINES):
        yield f"    {line}"
    if left := sum(1 for _ in lines):
        yield f"    {_more(left)}"
    yield ")"


def until(expires_at: float) -> str:
    """By when a call is to be decided about, in words.

    Args:
        expires_at: In seconds since the epoch.
    """
    return f"decide until {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(expires_at))}"


def brief_call(tool: str, arguments: object) -> str:
    """A call in a line, its arguments cut where they are long.

    >>> brief_call("refund", {"order": 17})
    'refund {"order": 17}'
    """
    given = _json(plain_arguments(arguments))
    return f"{one_line(tool)} {given if len(given) <= BRIEF_CHARS else given[:BRIEF_CHARS] + '…'}"


def plain_arguments(arguments: object) -> object:
    """Arguments by name, where they are told as JSON; as they are where that is none."""
    if not isinstance(arguments, str):
        return dict(arguments) if isinstance(arguments, Mapping) else arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def is_cut(tool: str, arguments: object) -> bool:
    """Whether `call_lines` leaves something out of a call, where it may."""
    return list(call_lines(tool, arguments)) != list(call_lines(tool, arguments, whole=True))


def decided(text: str) -> str:
    """What was decided, in words, by the answer that says it.

    >>> decided('{"decision": "deny", "note": "not today"}')
    'denied: not today'
    """
    from harness_actors.policies.decisions import Approve, Refuse, Respond, decision_in

    try:
        decision = decision_in(text)
    except ValueError:
        return one_line(text)
    match decision:
        case Approve(None, note, standing):
            return f"approved{_for(standing)}{_because(note)}"
        case Approve(arguments, note, _):
            return f"approved with {_json(dict(arguments or {}))}{_because(note)}"
        case Refuse(note, standing):
            return f"denied{_for(standing)}{_because(note)}"
        case Respond(said):
            return f"answered in its place: {one_line(said)}"


def decided_word(text: str) -> str:
    """What was decided, in a word, by the answer that says it.

    >>> decided_word("yes"), decided_word('{"decision": "respond", "text": "17"}')
    ('approved', 'answered')
    """
    from harness_actors.policies.decisions import Approve, Refuse, Respond, decision_in

    match decision_in(text):
        case Approve():
            return "approved"
        case Refuse():
            return "denied"
        case Respond():
            return "answered"


def _for(standing: str) -> str:
    match standing:
        case "tool":
            return ", and so are all later calls of this tool"
        case "arguments":
            return ", and so are later calls of this tool with these arguments"
        case _:
            return ""


def _because(note: str) -> str:
    return f": {one_line(note)}" if note else ""


def _argument_lines(given: object) -> Iterator[Iterator[str]]:
    """The lines of each argument."""
    if not isinstance(given, dict):
        # What a model wrote in place of arguments.
        yield iter((_json(given),))
        return
    for name, value in given.items():
        yield _lines_of(name if name.isidentifier() else _json(name), value)


def _lines_of(name: str, value: object) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value:
        yield f"{name}:"
        # Marked, so that no line of a text looks like another argument.
        yield from (f"  | {one_line(line)}" for line in value.split("\n"))
        return
    first, *others = _json(value, indent=2).split("\n")
    yield f"{name}: {first}"
    yield from (f"  {line}" for line in others)


def _cut_argument(lines: list[str]) -> Iterator[str]:
    yield from map(_cut, lines[:MOST_OF_ONE])
    if len(lines) > MOST_OF_ONE:
        yield f"  {_more(len(lines) - MOST_OF_ONE)}"


def _more(lines: int) -> str:
    return f"… and {lines:,} more line{'' if lines == 1 else 's'}"


def _json(value: Any, indent: int | None = None) -> str:
    # Escaped as JSON has it, so that what is shown may be typed again.
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def _cut(line: str) -> str:
    left = len(line) - MOST_CHARS
    return line if left <= 0 else f"{line[:MOST_CHARS]}… ({left:,} more characters)"
