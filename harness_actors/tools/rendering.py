"""What a tool returned, as the text that the model gets."""

import math
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import LargeResult


def render_result(value: Any, tool: str) -> str:
    """The text of a tool's result.

    Args:
        value: A text stays as it is, None is empty, bytes are decoded; anything else
            becomes JSON. JSON has no word for numbers that are not finite, and `null`
            would hide them: they become ``NaN``, ``Infinity`` and ``-Infinity``, as a
            text inside of JSON.
        tool: The tool's name, for messages.

    Raises:
        ToolError: Bytes that are not text, or a value of which there is no JSON.
    """
    match value:
        case LargeResult():
            return value
        case str():
            return str(value)
        case None:
            return ""
        case bytes() | bytearray() | memoryview():
            return _decoded(bytes(value), tool)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return _json(value, tool)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _decoded(data: bytes, tool: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{tool!r} returned {len(data)} bytes that are not UTF-8 text") from None


def _json(value: Any, tool: str) -> str:
    from pydantic_core import to_json, to_jsonable_python

    try:
        # In two steps: models of pydantic would turn NaN to null on the way to JSON.
        plain = to_jsonable_python(value, inf_nan_mode="constants", bytes_mode="utf8")
        return to_json(plain, inf_nan_mode="strings").decode("utf-8")
    except (ValueError, RecursionError) as error:
        raise ToolError(
            f"{tool!r} returned {_a(type(value).__name__)} that cannot be written as JSON: {error}"
        ) from None
