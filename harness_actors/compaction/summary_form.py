"""The form in which a model is to summarize, and how its answer is read."""

import json
import re
from collections.abc import Mapping
from typing import Any

from harness_actors.plan import Decision, OpenItem, Summary
from harness_actors.plan.summary_text import one_line, shortened

VERSION = 1
ENTRY_CHARS = 600
"""Of a sentence of a summary; what is longer is cut."""
MOST_ENTRIES = 200
"""Of a kind; of more, the first count."""
_MESSAGE = re.compile(r"\[?m?(\d{1,10})\]?")
_PRIORITIES = ("high", "normal", "low")


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT: dict[str, Any] = {"type": "string"}


def _list_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(item)}


SCHEMA: Mapping[str, Any] = _object(
    facts=_list_of(_TEXT),
    decisions=_list_of(_object(what=_TEXT, why=_TEXT, message=_TEXT)),
    open_items=_list_of(
        _object(
            what=_TEXT,
            context=_TEXT,
            priority={"type": "string", "enum": list(_PRIORITIES)},
            done={"type": "boolean"},
        )
    ),
    current_task=_TEXT,
    current_plan=_list_of(_TEXT),
)
"""What a model is to answer, as a JSON schema that strict modes take."""

RESPONSE_FORMAT = json.dumps(
    {
        "type": "json_schema",
        "json_schema": {"name": "summary", "strict": True, "schema": SCHEMA},
    }
).encode()


class NoSummaryError(ValueError):
    """An answer is no summary; says why."""


def read_summary(answer: str, positions: range) -> Summary:
    """The summary in an answer, of which nothing is taken that could not be so.

    Args:
        answer: What the model says; fences and words around the object are left aside.
        positions: Of the messages that it was given. A decision that names another one is taken
            for one of the last.

    Raises:
        NoSummaryError: It is none, or says nothing.
    """
    plain = _object_in(answer)
    facts = tuple(map(_sentence, _entries(plain, "facts", str)))
    decisions = (_decision(one, positions) for one in _entries(plain, "decisions", dict))
    open_items = (_open_item(one) for one in _entries(plain, "open_items", dict))
    plan = tuple(map(_sentence, _entries(plain, "current_plan", str)))
    summary = Summary(
        facts=tuple(filter(None, facts)),
        decisions=tuple(one for one in decisions if one.what),
        open_items=tuple(one for one in open_items if one.what),
        current_task=_sentence(_of(plain, "current_task", str)),
        current_plan=tuple(filter(None, plan)),
    )
    if summary == Summary():
        raise NoSummaryError("it says nothing")
    return summary


def _object_in(answer: str) -> dict[str, Any]:
    begin = answer.find("{")
    if begin < 0:
        raise NoSummaryError("there is no JSON object in it")
    try:
        plain, _ = json.JSONDecoder().raw_decode(answer[begin:])
    except (ValueError, RecursionError) as error:
        raise NoSummaryError(f"it is no JSON: {error}"[:200]) from None
    if not isinstance(plain, dict):
        raise NoSummaryError("it is no JSON object")
    return plain


def _of(plain: Mapping[str, Any], name: str, kind: type) -> Any:
    """A value of an object; an empty one where it is missing."""
    value = plain.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise NoSummaryError(f"its {name} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _entries(plain: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    found = _of(plain, name, list)[:MOST_ENTRIES]
    for one in found:
        if not isinstance(one, kind):
            problem = f"its {name} must each be {kind.__name__}, not {type(one).__name__}"
            raise NoSummaryError(problem)
    return list(found)


def _sentence(text: str) -> str:
    return shortened(one_line(text), ENTRY_CHARS)


def _decision(plain: Mapping[str, Any], positions: range) -> Decision:
    named = _MESSAGE.fullmatch(_of(plain, "message", str).strip())
    at = -1 if named is None else int(named[1])
    return Decision(
        what=_sentence(_of(plain, "what", str)),
        why=_sentence(_of(plain, "why", str)),
        at=at if at in positions else positions[-1],
    )


def _open_item(plain: Mapping[str, Any]) -> OpenItem:
    priority = _of(plain, "priority", str)
    return OpenItem(
        what=_sentence(_of(plain, "what", str)),
        context=_sentence(_of(plain, "context", str)),
        priority=priority if priority in _PRIORITIES else "normal",
        done=_of(plain, "done", bool),
    )
