"""The arguments of a call as a person is shown them who decides about it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

SHOWN_CHARS = 20_000
"""Arguments that are longer are shown with shortened texts: a question stays in memory, and is
told in lists of many runs. What is made is what the model wrote."""
SHOWN_TEXT_CHARS = 500
LEFT_OUT = "…"
"""The one argument that is shown in place of those that are too many."""
_SHORTENED = re.compile(rf".{{{SHOWN_TEXT_CHARS}}}… \([\d,]+ characters\)", re.DOTALL)
_TOO_MANY = re.compile(r"[\d,]+ characters, too many to be shown")


def shown_arguments(text: str) -> str:
    """Arguments as they are shown: a JSON object of some 20,000 characters at most.

    Args:
        text: An object in JSON, or nothing.
    """
    if len(text) <= SHOWN_CHARS:
        return text if text.strip() else "{}"
    shown = json.dumps(_shortened(json.loads(text)), ensure_ascii=False)
    if len(shown) <= SHOWN_CHARS:
        return shown
    said = f"{len(text):,} characters, too many to be shown"
    return json.dumps({LEFT_OUT: said}, ensure_ascii=False)


def taken_from_shown(shown: object, given: Mapping[str, Any]) -> str | None:
    """An argument that was taken over from what is shown, where that is not the whole of it.

    Args:
        shown: What `shown_arguments` has made, read.
        given: What a person wants the call to be made with.

    Returns:
        Its name; None where there is no such argument.
    """
    if given == shown and _TOO_MANY.fullmatch(str(given.get(LEFT_OUT))):
        return LEFT_OUT
    beginnings = {one for one in _texts(shown) if _SHORTENED.fullmatch(one)}
    if not beginnings:
        return None
    return next(
        (name for name, value in given.items() if not beginnings.isdisjoint(_texts(value))), None
    )


def _shortened(value: Any) -> Any:
    match value:
        case str() if len(value) > SHOWN_TEXT_CHARS:
            return f"{value[:SHOWN_TEXT_CHARS]}… ({len(value):,} characters)"
        case dict():
            return {name: _shortened(item) for name, item in value.items()}
        case list():
            return [_shortened(item) for item in value]
        case _:
            return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
