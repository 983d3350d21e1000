"""JSON as it is meant: no number changes on its way, no name has two values, NaN is none."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import orjson

QUOTED_CHARS = 80
"""Of a value at fault, at most."""
_MAY_BE_LONG = re.compile(r"[0-9]{19}")
"""Such as 64 bits may not hold, which orjson rounds."""


def values_in(text: str) -> Any:
    """What a text says, whole numbers of any size exactly.

    Raises:
        ValueError: It is no JSON, or nested too deep.

    >>> values_in('{"order": 123456789012345678901234}')
    {'order': 123456789012345678901234}
    """
    if _MAY_BE_LONG.search(text) is None:
        return orjson.loads(text)
    try:
        return json.loads(text, parse_constant=no_constant, parse_float=finite)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def values_text(values: object) -> str:
    """Plain values as a text; what is not valid Unicode is replaced.

    Raises:
        TypeError: Something is of no kind that JSON has.
        ValueError: A number is infinite or none, or something holds itself.
        RecursionError: It is nested too deep.
    """
    text = json.dumps(
        values, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )
    return text.encode("utf-8", "replace").decode()


def _plain(value: object) -> Any:
    """Of what orjson knows besides: dates, dataclasses and the like."""
    return orjson.loads(orjson.dumps(value))


def finite(digits: str) -> float:
    """A number with a fraction or an exponent; for `parse_float`.

    Raises:
        ValueError: It is larger than numbers can be.
    """
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"the number {quoted(digits)} is too large")
    return number


def quoted(value: object) -> str:
    """A value at fault, for an error."""
    shown = repr(value)
    return shown if len(shown) <= QUOTED_CHARS else f"{shown[: QUOTED_CHARS - 3]}..."


def no_constant(name: str) -> Any:
    """Refuse what JSON does not have; for `parse_constant`."""
    raise ValueError(f"there is no {name}")


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object by its pairs; for `object_pairs_hook`.

    Raises:
        ValueError: A name is given twice: none of its values is known to be the one that is meant.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {quoted(name)} is given twice")
        found[name] = value
    return found
