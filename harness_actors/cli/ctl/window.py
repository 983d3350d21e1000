"""How full the window of a run's model is, and what was done about that."""

from typing import TYPE_CHECKING, Any

from harness_actors.cli.event_lines import room_made
from harness_actors.events import ContextCompacted

if TYPE_CHECKING:
    from harness_actors.records import StoredRun
    from harness_actors.stores import JournalReader

SHOWN = 5
"""Times that room was made of which a line tells; the newest."""


def compacted(journal: "JournalReader", run_id: str) -> list[dict[str, Any]]:
    """The events of a run that tell when its model was shown less from then on."""
    from harness_actors.events import encode_event

    events = (told.event for told in journal.load_events(0, run_id=run_id, limit=1 << 30))
    return [encode_event(event) for event in events if isinstance(event, ContextCompacted)]


def window(stored: "StoredRun", events: list[dict[str, Any]]) -> dict[str, Any]:
    """How large the next request of a run is, and what was done about that.

    Args:
        stored: The run.
        events: What `compacted` has found.
    """
    from harness_actors.state import PRESSURE, REQUEST_TOKENS, SIDE_USAGE

    values, plan = stored.state.values, stored.state.plan
    pressure = values.get(PRESSURE.name) or {}
    return {
        "tokens": values.get(REQUEST_TOKENS.name, 0),
        "window_tokens": pressure.get("window_tokens") or stored.spec.config.window_tokens,
        "plan": 0 if plan is None else plan.version,
        "compacted": events,
        "summaries": values.get(SIDE_USAGE.name),
    }


def window_rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    """The same for a table."""
    from harness_actors.events import decode_event
    from harness_actors.results import Usage

    tokens, most = told["tokens"], told["window_tokens"]
    rows = [("window", f"{tokens:,} of {most:,} tokens ({tokens / most:.0%})")]
    compacted = told["compacted"]
    if (left := len(compacted) - SHOWN) > 0:
        rows.append(("made room", f"{left} times before; `ctl run events` shows all"))
    for plain in compacted[-SHOWN:]:
        event = decode_event(plain)
        assert isinstance(event, ContextCompacted)
        rows.append(("made room", f"turn {event.turn}: {room_made(event)}"))
    if told["summaries"]:
        used = Usage(**told["summaries"])
        cost = f"{used.model_calls} model calls, {used.tokens:,} tokens, {used.cost_usd:.4f} USD"
        rows.append(("summaries", f"{cost}, which is in what it used"))
    return rows
