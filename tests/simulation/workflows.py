"""Workflows of users: what stands where in them, chosen by a seed before anything happens."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from harness_actors.results import Reason
from harness_actors.signals import RunEnd
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION

ExecutorKind = Literal[
    "tally",
    "scribe",
    "observer",
    "courier",
    "pause",
    "slow",
    "judge",
    "flaw",
    "crash",
    "replacement",
    "restless",
]
"""`tally`: has its change committed, then passes on what it got; `scribe`: writes an event and
perhaps a message; `observer`: acts on what it sees elsewhere; `courier`: answers a signal of its
own; `pause`: stops runs that are to park; `slow`: takes its time; `judge`: ends the run; `flaw`:
raises; `crash`: kills its process; `replacement`: does what ours of its name does; `restless`: in
the place of the stop decision, has every run go on."""

JUDGED = RunEnd(status="stalled", reason=Reason(kind="blocked", message="judged"))
"""The end that a `judge` makes."""
KINDS: Mapping[ExecutorKind, int] = {
    "tally": 4,
    "scribe": 3,
    "observer": 3,
    "courier": 2,
    "pause": 2,
    "slow": 2,
    "judge": 2,
    "flaw": 1,
    "crash": 2,
}
"""Of those that are put after another one: how often each is chosen."""
EDGES = (REPAIR, COMPACTION, AGENT_TURN, STOP_DECISION)


@dataclass(frozen=True, slots=True)
class PlannedExecutor:
    """An executor of the user's own.

    Attributes:
        name: Its name in the workflow.
        kind: What it does.
        place: Which of ours it stands after, or replaces.
        after: Of a `judge`, a `flaw` or a `crash`: the visit at which it does so, from 1.
    """

    name: str
    kind: ExecutorKind
    place: str
    after: int = 0


PlannedWorkflow = tuple[PlannedExecutor, ...]
"""What differs from the default, in the order in which it is done."""


def plan_workflows(chance: Random) -> dict[str, PlannedWorkflow]:
    """The workflows that the runs of a schedule may have, by the name of their program."""
    return {"custom": _plan_workflow(chance, "custom"), "other": _plan_workflow(chance, "other")}


def _plan_workflow(chance: Random, program: str) -> PlannedWorkflow:
    planned: list[PlannedExecutor] = []
    if chance.random() < 0.3:
        place = chance.choice((REPAIR, COMPACTION, COMPACTION, STOP_DECISION))
        planned.append(PlannedExecutor(place, "replacement", place))
    for number in range(chance.choice((1, 1, 2)) if not planned else chance.choice((0, 1))):
        planned.append(_plan_inserted(chance, f"{program}_{number}"))
    if chance.random() < 0.08 and all(one.name != STOP_DECISION for one in planned):
        planned.append(PlannedExecutor(STOP_DECISION, "restless", STOP_DECISION))
    return tuple(planned)


def _plan_inserted(chance: Random, name: str) -> PlannedExecutor:
    place = chance.choice((*EDGES, AGENT_TURN))
    kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "courier" and place == AGENT_TURN:
        # The stop decision judges the signal of the turn, and takes no other.
        kind = "tally"
    return PlannedExecutor(f"{name}_{kind}", kind, place, chance.randint(1, 4))


def visits_of(name: str) -> str:
    """The entry in which an executor of this name counts its answers."""
    return f"{name}.visits"


def begun_of(name: str) -> str:
    """The entry in which a tally of this name counts what it begins."""
    return f"{name}.begun"
