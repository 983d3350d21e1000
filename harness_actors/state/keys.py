"""The entries of a run's state that are ours: names, types and owners."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.results import Usage
from harness_actors.state.shared import StateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call of the log that has no result yet."""

    call_id: str
    tool_name: str
    idempotent: bool
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnProgress:
    """Where the turn in progress stands; what a turn needs to go on after a pause."""

    rounds: int = 0
    progressed: bool = False


REPAIR = "repair"
COMPACTION = "compaction"
AGENT_TURN = "agent_turn"
STOP_DECISION = "stop_decision"
COORDINATOR = "coordinator"

TURN_COUNT: StateKey[int] = StateKey("harness.turn_count", int, AGENT_TURN, "increment", 0)
TURNS_MADE: StateKey[int] = StateKey("harness.turns_made", int, COORDINATOR, "set", 0)
"""Answers of an executor of the user's own that stands in the place of the agent turn, which
need not count its turns. Runs of other workflows do not have it."""
TURN: StateKey[TurnProgress | None] = StateKey("harness.turn", TurnProgress | None, AGENT_TURN)
"""The turn in progress; None between turns."""
OPEN_CALLS: StateKey[tuple[OpenCall, ...]] = StateKey(
    "harness.open_calls", tuple[OpenCall, ...], AGENT_TURN, "set", [], (REPAIR,)
)
"""Calls whose start was committed and whose result was not. Repair takes out those that it
closes; what it leaves is idempotent and is run again."""
USAGE: StateKey[Usage] = StateKey("harness.usage", Usage, AGENT_TURN, "increment", {})
REQUEST_TOKENS: StateKey[int] = StateKey("harness.request_tokens", int, AGENT_TURN, "increment", 0)
"""Tokens of the next request: the newest request and its answer as the provider counted
them, and what was added to the log since. Whoever adds a message adds its tokens here, so
that pressure is measured without the log."""
PARKING: StateKey[bool] = StateKey("harness.parking", bool, COORDINATOR, "set", False)
"""The run was asked to park and has not done so yet. On disk, so that the request outlives
the coordinator that it was made to."""
BUDGET: StateKey[float | None] = StateKey("harness.budget", float | None, COORDINATOR)
"""What all runs of the command may cost together, in US dollars; None for no bound. The
coordinator holds them to it, and keeps it with each run so that it outlives itself."""
NUDGES: StateKey[int] = StateKey("harness.nudges", int, STOP_DECISION, "set", 0)
"""Nudges since the last progress."""
REPAIRS: StateKey[int] = StateKey("harness.repairs", int, REPAIR, "increment", 0)
STARTED: StateKey[bool] = StateKey("harness.started", bool, REPAIR, "set", False)


def turns_of(values: Mapping[str, Any]) -> int:
    """Turns that a run has had, by the entries of its state: whoever counted them."""
    return max(values.get(TURN_COUNT.name) or 0, values.get(TURNS_MADE.name) or 0)
