"""Faults in trees of runs: who is begun, waited for, told of, and ended with whom."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.actors.coordinator.admission import Admission
from harness_actors.coordination import children
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.children import Children
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.departures import Departures
from harness_actors.coordination.stopping import Stopping
from harness_actors.coordination.tree_limits import TreeLimits
from harness_actors.events import ChildEnded, ChildrenStarted
from harness_actors.records import Entry, ParentLink, RunChanged, StoredRun
from harness_actors.results import HarnessResult
from harness_actors.state import (
    ChildResult,
    StateDelta,
)
from harness_actors.subagents import reports
from tests.simulation.kin import GIVEN, OUTLIVED, TOLD, WITH_CALL
from tests.simulation.kin_at_work import APART, AT_ONCE, NO_DEADLOCK, NOWHERE
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS, STOPPED
from tests.simulation.tree_bounds import BOUNDS, SUMMED


def _nobody_is_named() -> Patches:
    def patched(self: Children, run: ActiveRun, *facts: Any) -> None:
        begin(self, run, *facts)
        entries = facts[-1].entries
        for place, entry in enumerate(entries):
            if isinstance(entry, RunChanged):
                events = tuple(e for e in entry.delta.events if not isinstance(e, ChildrenStarted))
                entries[place] = replace(entry, delta=replace(entry.delta, events=events))

    begin = Children.begin
    return [(Children, "begin", patched)]


def _told_twice() -> Patches:
    def patched(self: Children, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        before = len(effects.entries)
        over(self, run, result, effects)
        for entry in _tellings(effects.entries[before:]):
            if entry.run_id in self._runs:
                again = StateDelta(events=entry.delta.events)
                self._changes.change(self._runs[entry.run_id], again, effects)

    over = Children.over
    return [(Children, "over", patched)]


def _kept_to_itself() -> Patches:
    def patched(self: Children, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        before = len(effects.entries)
        over(self, run, result, effects)
        for entry in _tellings(effects.entries[before:]):
            at = effects.entries.index(entry)
            effects.entries[at] = replace(entry, delta=replace(entry.delta, events=()))

    over = Children.over
    return [(Children, "over", patched)]


def _tellings(entries: Sequence[Entry]) -> list[RunChanged]:
    """The changes by which parents are told of ends."""
    changes = [entry for entry in entries if isinstance(entry, RunChanged)]
    return [
        change
        for change in changes
        if any(isinstance(event, ChildEnded) for event in change.delta.events)
    ]


def _children_outlive_it() -> Patches:
    return [(Children, "before_end", lambda self, run, effects: None)]


def _those_aside_outlive_it() -> Patches:
    def patched(self: Children, run: ActiveRun, effects: Effects) -> None:
        self._resting.clear()
        before_end(self, run, effects)

    before_end = Children.before_end
    return [(Children, "before_end", patched)]


def _goes_on_with_the_first() -> Patches:
    return [(Children, "_unfinished", lambda self, parent, writes=(): False)]


def _all_at_once() -> Patches:
    def patched(self: Children, parent: ActiveRun, effects: Effects) -> None:
        queue = self._queued.pop(parent.spec.run_id, ())
        for run_id in queue:
            self._dispatch.deliver(self._runs[run_id], effects)

    return [(Children, "_fill", patched)]


def _queue_is_forgotten() -> Patches:
    def patched(self: Children, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        vars(self)["_fill"] = lambda parent, effects: None
        over(self, run, result, effects)
        del vars(self)["_fill"]

    over = Children.over
    return [(Children, "over", patched)]


def _waits_at_its_host() -> Patches:
    def patched(self: Children, run: ActiveRun, *facts: Any) -> None:
        begin(self, run, *facts)
        self._dispatch.deliver(run, facts[-1])

    begin = Children.begin
    return [(Children, "begin", patched)]


def _goes_on_when_taken_up() -> Patches:
    def patched(self: Children, run: ActiveRun, effects: Effects) -> None:
        take_up(self, run, effects)
        if run.waits_for_children:
            self._dispatch.deliver(run, effects)

    take_up = Children.take_up
    return [(Children, "take_up", patched)]


def _parent_that_waits_is_woken_by_nobody() -> Patches:
    def patched(self: Departures, parent: ActiveRun, effects: Effects) -> None:
        if parent.closing is None and not parent.parking:
            self._dispatch.deliver(parent, effects)

    return [(Departures, "wake", patched)]


def _only_the_root_is_taken_up() -> Patches:
    async def patched(self: Admission, spec: Any, values: Any) -> Sequence[StoredRun]:
        return ()

    return [(Admission, "_below", patched)]


def _an_idle_tree_is_not_ended() -> Patches:
    def patched(self: Coordinator, stored: StoredRun, mode: str, **facts: Any) -> Effects:
        return stop_idle(self, stored, mode, **{**facts, "tree": ()})

    stop_idle = Coordinator.stop_idle
    return [(Coordinator, "stop_idle", patched)]


def _parks_alone() -> Patches:
    def patched(self: Stopping, run: ActiveRun, mode: str, effects: Effects) -> None:
        kin, tree_of = self._children, self._children.tree_of
        kin.tree_of = lambda run: [run]  # type: ignore[method-assign]
        stop(self, run, mode, effects)
        kin.tree_of = tree_of  # type: ignore[method-assign]

    stop = Stopping.stop
    return [(Stopping, "stop", patched)]


def _parks_at_the_top_first() -> Patches:
    def patched(self: Stopping, run: ActiveRun, mode: str, effects: Effects) -> None:
        kin, tree_of = self._children, self._children.tree_of
        kin.tree_of = lambda run: tree_of(run)[:1]  # type: ignore[method-assign]
        stop(self, run, mode, effects)
        kin.tree_of = tree_of  # type: ignore[method-assign]

    stop = Stopping.stop
    return [(Stopping, "stop", patched)]


def _bounds_are_its_own() -> Patches:
    return [(TreeLimits, "close_if_spent", lambda self, run, tree, effects: None)]


def _grandchildren_are_not_counted() -> Patches:
    def patched(self: Children, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        over(self, run, replace(result, children_usage=None), effects)

    over = Children.over
    return [(Children, "over", patched)]


def _lost_is_failed() -> Patches:
    def patched(result: HarnessResult) -> Any:
        status = status_of(result)
        return "failed" if status in ("lost", "timed_out") else status

    status_of = reports.status_of
    return [(reports, "status_of", patched)]


def _cut_in_silence() -> Patches:
    def patched(text: str, most_words: int | None) -> str:
        return within(text, most_words).partition("\n[Cut")[0]

    within = reports._within
    return [(reports, "_within", patched)]


def _why_is_not_said() -> Patches:
    def patched(link: ParentLink, result: HarnessResult, values: Mapping[str, Any]) -> ChildResult:
        made = child_result(link, result, values)
        return made if made.status == "completed" else replace(made, text=result.output_text)

    child_result = reports.child_result
    return [(children, "child_result", patched)]


def _cancelled_behind_one_that_is_aside() -> Patches:
    async def patched(self: Admission, stored: StoredRun) -> bool:
        return False

    return [(Admission, "_is_behind", patched)]


BUGS = (
    PlantedBug(
        "a run that is cancelled closes calls of another one, whose children are aside",
        _cancelled_behind_one_that_is_aside,
        frozenset({WITH_CALL, GIVEN}),
    ),
    PlantedBug("a parent does not say whom it begins", _nobody_is_named, frozenset({WITH_CALL})),
    PlantedBug("the end of a child is told twice", _told_twice, frozenset({TOLD})),
    PlantedBug("the end of a child is kept to itself", _kept_to_itself, frozenset({TOLD})),
    PlantedBug("children outlive their parent", _children_outlive_it, frozenset({OUTLIVED})),
    PlantedBug(
        "children that are put aside outlive their parent",
        _those_aside_outlive_it,
        frozenset({OUTLIVED}),
    ),
    PlantedBug(
        "a parent goes on with the first end", _goes_on_with_the_first, frozenset({NOWHERE})
    ),
    PlantedBug("all children are served at once", _all_at_once, frozenset({AT_ONCE})),
    PlantedBug(
        "queued children are forgotten", _queue_is_forgotten, frozenset({NO_DEADLOCK, ENDS})
    ),
    PlantedBug("a parent waits at its host", _waits_at_its_host, frozenset({NOWHERE})),
    PlantedBug(
        "a parent that waits goes on when it is taken up",
        _goes_on_when_taken_up,
        frozenset({NOWHERE}),
    ),
    PlantedBug(
        "a parent that is to park or to end is left waiting",
        _parent_that_waits_is_woken_by_nobody,
        frozenset({NO_DEADLOCK, ENDS, APART}),
    ),
    PlantedBug(
        "of a tree only the top is taken up",
        _only_the_root_is_taken_up,
        frozenset({NO_DEADLOCK, OUTLIVED}),
    ),
    PlantedBug(
        "of a tree that nobody serves only the top is ended",
        _an_idle_tree_is_not_ended,
        frozenset({OUTLIVED}),
    ),
    PlantedBug("a child parks alone", _parks_alone, frozenset({APART, STOPPED})),
    PlantedBug("of a tree only the top parks", _parks_at_the_top_first, frozenset({APART})),
    PlantedBug("a tree has no bounds", _bounds_are_its_own, frozenset({BOUNDS})),
    PlantedBug(
        "grandchildren are not counted", _grandchildren_are_not_counted, frozenset({SUMMED})
    ),
    PlantedBug("a child that is lost has failed", _lost_is_failed, frozenset({TOLD, GIVEN})),
    PlantedBug("a report is cut in silence", _cut_in_silence, frozenset({GIVEN})),
    PlantedBug("why a child ended is not said", _why_is_not_said, frozenset({GIVEN})),
)
