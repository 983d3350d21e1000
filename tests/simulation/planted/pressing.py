"""Faults in how a conversation is kept within the window of its model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.compaction import groups, ladder
from harness_actors.compaction.groups import Group
from harness_actors.compaction.ladder import Ladder
from harness_actors.compaction.pressure import next_version
from harness_actors.compaction.strategies import SHIPPED
from harness_actors.coordination import taking_up
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.executors.context import DeltaContext
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, View, is_pinned
from harness_actors.ports import Strategy
from harness_actors.records import RunSpec, StoredRun
from harness_actors.signals import TurnComplete, Yielded
from harness_actors.state import StateDelta
from harness_actors.turn.window import Window
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.pressing import (
    ACCEPTED,
    FITS,
    IN_TURN,
    MADE,
    ONE_PLAN,
    OWN_WORDS,
    SMALLER_NEXT,
)

RESULTS = "every call of the log has exactly one result"


def _never_full() -> Patches:
    return [(Window, "full", lambda self: None)]


def _never_shown() -> Patches:
    return [(DeltaContext, "view", property(lambda self: None))]


def _skips_a_version() -> Patches:
    def patched(plan: CompactionPlan | None) -> tuple[int, int]:
        version, base = following(plan)
        return version + 1, base

    following = next_version
    return [
        (ladder, "next_version", patched),
        (CompactionPlan, "follows", lambda self, plan: True),
    ]


def _groups_are_messages() -> Patches:
    def patched(log: Sequence[Message], start: int, end: int) -> Iterator[Group]:
        for at in range(start, end):
            pinned = is_pinned(log[at])
            yield Group(start=at, end=at + 1, pinned=pinned, tokens=log[at].tokens)

    return [(groups, "between", patched)]


def _nothing_is_pinned() -> Patches:
    return [(groups, "is_pinned", lambda message: False)]


def _forgotten_by_the_next_cell() -> Patches:
    def patched(stored: StoredRun) -> ActiveRun:
        run = taken(stored)
        run.state.plan = None
        return run

    taken = taking_up.taken_from
    return [(taking_up, "taken_from", patched)]


def _forgotten_by_the_next_run() -> Patches:
    def patched(self: Coordinator, spec: RunSpec, log: Any = (), plan: Any = None) -> Effects:
        return submit(self, spec, log)

    submit = Coordinator.submit
    return [(Coordinator, "submit", patched)]


def _asked_again() -> Patches:
    def climb(self: Ladder) -> Iterator[None]:
        return iter(()) if self._pressure.refused else climbed(self)

    def full(self: Window) -> Yielded | TurnComplete | None:
        known = self._pressure
        return None if known is not None and known.refused else is_full(self)

    climbed, is_full = Ladder.climb, Window.full
    return [(Ladder, "climb", climb), (Window, "full", full)]


def _one_message_is_skipped() -> Patches:
    def patched(self: View) -> list[Message]:
        return [*self._shown, *self._log[self.plan.upto + 1 :]]

    return [(View, "messages", patched)]


def _may_name_any() -> Patches:
    def patched(self: Ladder, strategy: Strategy, groups: Sequence[Group]) -> Iterator[None]:
        return follow(self, strategy, groups if strategy in SHIPPED else self._groups)

    follow = Ladder._follow
    return [(Ladder, "_follow", patched)]


def _whoever_parks_loses_it() -> Patches:
    def patched(
        self: RunChanges, run: ActiveRun, delta: StateDelta, *given: Any, **named: Any
    ) -> None:
        leave_service(self, run, replace(delta, plan=None), *given, **named)

    leave_service = RunChanges.leave_service
    return [(RunChanges, "leave_service", patched)]


BUGS = (
    PlantedBug(
        "whoever parks as room was made has none", _whoever_parks_loses_it, frozenset({MADE})
    ),
    PlantedBug("a request is never too large", _never_full, frozenset({FITS})),
    PlantedBug("an adopted plan is not looked at", _never_shown, frozenset({FITS})),
    PlantedBug("a plan skips a version", _skips_a_version, frozenset({IN_TURN})),
    PlantedBug(
        "a call and its results are taken apart",
        _groups_are_messages,
        frozenset({ACCEPTED, RESULTS}),
    ),
    PlantedBug("the user's words are dropped", _nothing_is_pinned, frozenset({OWN_WORDS})),
    PlantedBug(
        "the next cell does not know the plan", _forgotten_by_the_next_cell, frozenset({IN_TURN})
    ),
    PlantedBug(
        "the next run does not know the plan", _forgotten_by_the_next_run, frozenset({IN_TURN})
    ),
    PlantedBug("what was refused is asked again", _asked_again, frozenset({SMALLER_NEXT})),
    PlantedBug(
        "a message behind the plan is skipped",
        _one_message_is_skipped,
        frozenset({ACCEPTED, ONE_PLAN, RESULTS}),
    ),
    PlantedBug(
        "a strategy of the agent's own may name the user's words",
        _may_name_any,
        frozenset({OWN_WORDS}),
    ),
)
