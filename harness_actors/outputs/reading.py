"""The value that an answer holds: JSON, alone or in the one fenced block of a text."""

import json
import re
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.messages import MOST_BITS, MOST_LEVELS, is_too_deep
from harness_actors.tools.arguments import read_strictly

MOST_CHARS = 1024 * 1024
"""Of an output, as of the arguments of a call."""
NEAR_CHARS = 20
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)


def json_in(text: str) -> str:
    """The part of an answer that is meant to be its value.

    >>> json_in("Here it is:\\n```json\\n[1, 2]\\n```")
    '[1, 2]'
    """
    if _is_json(text):
        return text
    blocks = _FENCED.findall(text)
    return blocks[0].strip() if len(blocks) == 1 else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def value_of(text: str) -> Any:
    """The value of a JSON text that is an output.

    Raises:
        ToolError: It is none, or one that not every reader of JSON would give back.
    """
    if len(text) > MOST_CHARS:
        raise ToolError(f"it has {len(text):,} characters, and may have {MOST_CHARS:,}")
    try:
        value = read_strictly(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - NEAR_CHARS) : error.pos + NEAR_CHARS]
        raise ToolError(f"it is not JSON: {error}, near {near!r}") from None
    except ValueError as error:
        raise ToolError(f"it is not JSON: {error}") from None
    except RecursionError:
        raise ToolError("it is nested too deeply") from None
    if problem := problem_of(value):
        raise ToolError(problem)
    return value


def problem_of(value: Any) -> str:
    """Why a value cannot be kept and sent as it is; empty where it can."""
    if is_too_deep(value):
        return f"it is nested more than {MOST_LEVELS} levels deep"
    if _holds_large_number(value):
        return f"it has a whole number of more than {MOST_BITS} bits; give it as a text"
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "it has a text that is no valid Unicode"
    return ""


def _holds_large_number(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_holds_large_number, value.values()))
        case list():
            return any(map(_holds_large_number, value))
        case int():
            return value.bit_length() > MOST_BITS
    return False
