"""Values as they stand in a journal's columns: SQLite keeps any kind in any of them."""

from math import isfinite
from typing import Any

from harness_actors.messages import is_too_deep
from harness_actors.stores.room import DEEPEST


def text(value: Any) -> str:
    """A column of text.

    Raises:
        TypeError: It holds something else.
    """
    if type(value) is not str:
        raise TypeError(f"{_shown(value)} stands where a text belongs")
    return value


def whole(value: Any) -> int:
    """A column of whole numbers.

    Raises:
        TypeError: It holds something else.
    """
    if type(value) is not int:
        raise TypeError(f"{_shown(value)} stands where a whole number belongs")
    return value


def number(value: Any) -> float:
    """A column of numbers.

    Raises:
        TypeError: It holds something else, or no finite number.
    """
    if type(value) not in (int, float) or not isfinite(value):
        raise TypeError(f"{_shown(value)} stands where a number belongs")
    return float(value)


def mapping(value: Any) -> dict[str, Any]:
    """An unpacked mapping.

    Raises:
        TypeError: It is something else.
    """
    if type(value) is not dict:
        raise TypeError(f"{_shown(value)} stands where a mapping belongs")
    return value


def check_body(body: Any) -> None:
    """Refuse what is no message in the Chat Completions format.

    Raises:
        TypeError, KeyError, AttributeError: It is something else.
        ValueError: It is too deep.
    """
    content = mapping(body).get("content")
    if isinstance(content, list):
        for part in content:
            mapping(part)
    elif content is not None:
        text(content)
    for call in body.get("tool_calls") or ():
        function = mapping(call["function"])
        text(call["id"]), text(function["name"]), text(function["arguments"])
    if is_too_deep(body, DEEPEST):
        raise ValueError(f"a message has more than {DEEPEST} levels")


def _shown(value: Any) -> str:
    return f"{value!r:.40}" if isinstance(value, str | int | float) else type(value).__name__
