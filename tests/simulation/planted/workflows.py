"""Faults in what becomes of users' own workflows: which way runs go, and what is kept of it."""

from typing import Any

from harness_actors.config import HarnessConfig
from harness_actors.coordination import ceilings, graph, outcomes
from harness_actors.coordination.active import ActiveRun
from harness_actors.coordination.graph import BUILT_IN, Edges
from harness_actors.coordination.outcomes import Outcomes
from harness_actors.state import StateDelta
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ALONG_EDGES, OVERDRAWN, TAKEN_ONCE


def _edges_are_skipped() -> Patches:
    def patched(edges: Edges, name: str) -> str:
        end = successor(edges, name)
        return end if end in BUILT_IN else successor(edges, end)

    successor = graph.successor
    return [(outcomes, "successor", patched)]


def _answers_come_without_their_change() -> Patches:
    follow = Outcomes.follow

    def patched(self: Outcomes, run: ActiveRun, delta: StateDelta, *facts: Any) -> None:
        theirs = run.slot is not None and run.slot.code
        follow(self, run, StateDelta() if theirs else delta, *facts)

    return [(Outcomes, "follow", patched)]


def _a_workflow_may_have_a_turn_too_many() -> Patches:
    def patched(config: HarnessConfig, turns: int) -> bool:
        return turns > config.max_turns

    return [(ceilings, "out_of_turns", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "executors of the user's own are left out",
        _edges_are_skipped,
        frozenset({ALONG_EDGES}),
    ),
    PlantedBug(
        "answers come without their change",
        _answers_come_without_their_change,
        frozenset({TAKEN_ONCE}),
    ),
    PlantedBug(
        "a workflow may have a turn too many",
        _a_workflow_may_have_a_turn_too_many,
        frozenset({OVERDRAWN}),
    ),
)
