"""Faults in how calls of one tree are kept apart that touch the same."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from harness_actors.actors.simulated.locks import SimulatedHeld, SimulatedKeys
from harness_actors.actors.simulated.processes import current_process
from harness_actors.stores import key_locks
from harness_actors.stores.key_locks import KeyLocks
from harness_actors.turn.bounds import Due
from harness_actors.turn.execution import Execution
from harness_actors.turn.keys import HeldKeys
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolExecutionResult, ToolOutcome
from tests.simulation.kin_at_work import NO_DEADLOCK
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS
from tests.simulation.shelves import APART

BEGINS = ToolExecutionResult(text="begins")


def _children_take_none() -> Patches:
    def patched(self: Execution, plan: PlannedCall) -> HeldKeys | None:
        return held(self, plan) if self._context.spec.parent is None else None

    held = Execution._held_keys
    return [(Execution, "_held_keys", patched)]


def _who_has_children_takes_none() -> Patches:
    def patched(self: Execution, plan: PlannedCall) -> HeldKeys | None:
        return None if self._context.spec.parent is None else held(self, plan)

    held = Execution._held_keys
    return [(Execution, "_held_keys", patched)]


def _of_each_run_alone() -> Patches:
    def patched(self: Execution, plan: PlannedCall) -> HeldKeys | None:
        found = held(self, plan)
        if found is not None:
            found._root = self._context.spec.run_id
        return found

    held = Execution._held_keys
    return [(Execution, "_held_keys", patched)]


def _who_writes_shares() -> Patches:
    def patched(self: KeyLocks, root: str, keys: Collection[str], *, reads: bool) -> Any:
        return held(self, root, keys, reads=True)

    held = KeyLocks.held
    return [(KeyLocks, "held", patched)]


def _one_key_is_enough() -> Patches:
    def patched(self: KeyLocks, root: str, keys: Collection[str], *, reads: bool) -> Any:
        return held(self, root, sorted(keys)[:1], reads=reads)

    held = KeyLocks.held
    return [(KeyLocks, "held", patched)]


def _held_as_it_begins() -> Patches:
    async def patched(
        self: HeldKeys, plan: PlannedCall, due: Due, make: Callable[[], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        async def begins() -> ToolOutcome:
            return BEGINS

        held = await hold(self, plan, due, begins)
        return await make() if held is BEGINS else held

    hold = HeldKeys.make
    return [(HeldKeys, "make", patched)]


def _the_dead_hold_on() -> Patches:
    def patched(self: SimulatedKeys, root: str, key: str, *, reads: bool) -> SimulatedHeld | None:
        beside = self._held.setdefault((root, key), [])
        if beside and not (reads and all(one.reads for one in beside)):
            return None
        held = SimulatedHeld(current_process(), reads, beside)
        beside.append(held)
        return held

    return [(SimulatedKeys, "take", patched)]


def _who_is_cut_holds_on() -> Patches:
    async def patched(self: Any) -> None:
        for place in self._places:
            self._taken.append(await self._locks.take(place, reads=self._reads))

    return [(key_locks._Holding, "__aenter__", patched)]


def _nobody_looks_again() -> Patches:
    return [(key_locks, "FIRST_PAUSE_S", 100_000.0), (key_locks, "LONGEST_PAUSE_S", 100_000.0)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("the calls of children hold no keys", _children_take_none, frozenset({APART})),
    PlantedBug(
        "a run beside its children holds no keys",
        _who_has_children_takes_none,
        frozenset({APART}),
    ),
    PlantedBug("each run of a tree has keys of its own", _of_each_run_alone, frozenset({APART})),
    PlantedBug("who writes shares its keys", _who_writes_shares, frozenset({APART})),
    PlantedBug("of several keys one is held", _one_key_is_enough, frozenset({APART})),
    PlantedBug("keys are held until a call begins", _held_as_it_begins, frozenset({APART})),
    PlantedBug(
        "keys are held by processes that are gone",
        _the_dead_hold_on,
        frozenset({ENDS, NO_DEADLOCK}),
    ),
    PlantedBug(
        "a call that is cut while it waits holds what it has",
        _who_is_cut_holds_on,
        frozenset({ENDS, NO_DEADLOCK}),
    ),
    PlantedBug(
        "who waits for another process's key is told by nobody",
        _nobody_looks_again,
        frozenset({ENDS, NO_DEADLOCK}),
    ),
)
