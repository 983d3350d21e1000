"""What a tool returned, as the text that the model gets."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Set
from itertools import chain
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import LargeResult, ToolOutput
from harness_actors.tools.images import MOST_IMAGES, Image, has_images

MOST_VALUES = 500_000
"""Values that are written as JSON, at most: nothing else runs in the process meanwhile."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of texts in them, at most, and of bytes that are decoded."""
MOST_LEVELS = 1_000
"""No JSON is nested as deep, which whoever writes it says."""


def render_output(value: Any, tool: str) -> str:
    """What a tool's result is for the model.

    Args:
        value: See `render_result`; or an `Image`, or a list of images and other values.
        tool: The tool's name, for messages.

    Raises:
        ToolError: As `render_result`; or there are too many images.
    """
    if isinstance(value, LargeResult | ToolOutput):
        return value
    if not has_images(value):
        return render_result(value, tool)
    parts = [value] if isinstance(value, Image) else list(value)
    images = [part for part in parts if isinstance(part, Image)]
    if len(images) > MOST_IMAGES:
        raise ToolError(f"{tool!r} returned {len(images)} images; {MOST_IMAGES} are allowed")
    texts = [
        f"[{part.label}]" if isinstance(part, Image) else render_result(part, tool)
        for part in parts
    ]
    return ToolOutput(
        "\n".join(texts),
        images=tuple(image.url for image in images),
        image_tokens=sum(image.tokens for image in images),
    )


def render_result(value: Any, tool: str) -> str:
    """The text of a tool's result.

    Args:
        value: A text stays as it is, None is empty, bytes are decoded; anything else
            becomes JSON. JSON has no word for numbers that are not finite, and `null`
            would hide them: they become ``NaN``, ``Infinity`` and ``-Infinity``, as a
            text inside of JSON.
        tool: The tool's name, for messages.

    Raises:
        ToolError: Bytes that are not text, a value of which there is no JSON, or one that is
            too large to be written as such.
    """
    match value:
        case LargeResult():
            return value
        case str():
            return str(value)
        case None:
            return ""
        case bytes() | bytearray() | memoryview():
            return _decoded(value, tool)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bool() | int() | float():
            return _json(value, tool)
        case _:
            _check_size(value, tool)
            return _json(value, tool)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _decoded(data: bytes | bytearray | memoryview, tool: str) -> str:
    size = memoryview(data).nbytes
    if size > MOST_BYTES:
        raise ToolError(f"{tool!r} returned {size} bytes; {MOST_BYTES} are allowed")
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{tool!r} returned {size} bytes that are not UTF-8 text") from None


def _check_size(value: Any, tool: str) -> None:
    """Refuse what would hold up everything else in the process while it is written."""
    size = 0
    for values, item in enumerate(_walk((value,)), start=1):
        if isinstance(item, str | bytes | bytearray):
            size += len(item)
        if values > MOST_VALUES or size > MOST_BYTES:
            raise ToolError(
                f"{tool!r} returned {_a(type(value).__name__)} that is too large to be written as "
                f"JSON: more than {MOST_VALUES} values or {MOST_BYTES} bytes"
            )


def _walk(values: Iterable[Any]) -> Iterable[Any]:
    """All values, and those that they are made of, down to where one may contain itself."""
    waiting = [iter(values)]
    while 0 < len(waiting) < MOST_LEVELS:
        for item in waiting[-1]:
            yield item
            if (parts := _parts(item)) is not None:
                waiting.append(iter(parts))
                break
        else:
            waiting.pop()


def _parts(item: Any) -> Iterable[Any] | None:
    match item:
        case str() | bytes() | bytearray() | int() | float() | None:
            return None
        case Mapping():
            return chain.from_iterable(item.items())
        case list() | tuple() | Set():
            return item
        case _ if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return (getattr(item, field.name, None) for field in dataclasses.fields(item))
        case _ if hasattr(type(item), "model_fields"):
            return list(vars(item).values())
        case _:
            return None


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
