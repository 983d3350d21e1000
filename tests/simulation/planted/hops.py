"""Faults in which hops are answered at once: of whom, and when."""

from collections.abc import Mapping
from typing import Any

from harness_actors.coordination.active import Effects
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.executors import at_once
from harness_actors.records import StoredRun
from harness_actors.signals import RepairTrigger, Signal
from harness_actors.state import OPEN_CALLS, REPAIR
from tests.simulation.kin_at_work import NOWHERE
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ANSWERED, ENDS, TOOLS_GONE


def _what_is_open_is_left() -> Patches:
    def patched(executor: str, signal: Signal, values: Mapping[str, Any]) -> bool:
        if executor == REPAIR and isinstance(signal, RepairTrigger):
            values = {name: one for name, one in values.items() if name != OPEN_CALLS.name}
            return has_work(executor, RepairTrigger(), values)
        return has_work(executor, signal, values)

    has_work = at_once._has_work
    return [(at_once, "_has_work", patched)]


def _as_each_is_taken_up() -> Patches:
    def patched(self: Coordinator, stored: StoredRun, *, asked: bool = False) -> Effects:
        return self._settled(adopt(self, stored, asked=asked))

    adopt = Coordinator.adopt
    return [(Coordinator, "adopt", patched)]


def _only_where_a_host_has_answered() -> Patches:
    return [(Coordinator, "_settled", lambda _self, effects: effects)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "nobody repairs what a death has left",
        _what_is_open_is_left,
        frozenset({ANSWERED, TOOLS_GONE}),
        at_once=True,
    ),
    PlantedBug(
        "runs of a tree go on before all of it is taken up",
        _as_each_is_taken_up,
        frozenset({NOWHERE}),
        at_once=True,
    ),
    PlantedBug(
        "hops wait for an answer that nobody gives",
        _only_where_a_host_has_answered,
        frozenset({ENDS}),
        at_once=True,
    ),
)
