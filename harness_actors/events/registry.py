"""All kinds of events, and how one is written down and read back."""

from collections.abc import Mapping
from typing import Any

from harness_actors.events import children, custom, gates, runs, stops, turns
from harness_actors.events.event import Event
from harness_actors.events.texts import TextDelta, TextGap

KINDS: tuple[type[Event], ...] = tuple(
    kind
    for module in (runs, turns, stops, gates, children, custom)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
)
"""Those that can be read back: every event in the modules of the subsystems."""

TOLD_EVENTS = (turns.ToolProgress,)
"""Those that are told to whoever reads along, and that no journal has."""

_KINDS = {kind.type: kind for kind in KINDS}

EVENT_TYPES: frozenset[str] = frozenset(_KINDS)
"""Their names."""

_TUPLES = {"tool_names", "tools", "questions", "unmet", "failed", "children"}
"""Fields that JSON knows as lists."""


def encode_event(event: Event | TextDelta | TextGap) -> dict[str, Any]:
    """The event as plain values, its kind under ``type``."""
    # Not `asdict`, which copies what nobody changes; the slots of an event are its fields.
    plain = {"type": event.type, **{name: getattr(event, name) for name in event.__slots__}}
    for name in ("traceback", "tools", "failure", "decision", "summarized"):
        if not plain.get(name, True):
            del plain[name]
    return plain


def decode_event(plain: Mapping[str, Any]) -> Event:
    """What `encode_event` wrote. Fields that this version does not know are left out.

    Raises:
        KeyError: The kind of event is unknown.
    """
    kind = _KINDS[plain["type"]]
    given = {name: value for name, value in plain.items() if name in kind.__slots__}
    for name in given.keys() & _TUPLES:
        given[name] = tuple(given[name])
    return kind(**given)
