"""Faults in what becomes of runs below others that ask their user."""

from collections.abc import Mapping
from typing import Any

from harness_actors.coordination import asked_below, children, waiting
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.children import Children
from harness_actors.coordination.departures import Departures
from harness_actors.records import RunSpec
from harness_actors.state import Write
from tests.simulation.asked_below import AS_ANSWERED, AT_THE_TOP, OTHERS_FIRST, TAKEN_BACK
from tests.simulation.kin_at_work import APART, AT_ONCE, NO_DEADLOCK, NOWHERE
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS, GIVEN_ONCE


def _the_tree_never_waits() -> Patches:
    return [(Children, "_asks_below", lambda self, run: False)]


def _it_waits_while_others_go_on() -> Patches:
    def patched(self: Departures, run: ActiveRun, effects: Effects) -> None:
        busy = run.held is not None or run.parking or run.closing is not None
        if not busy and run.waits_for_children and self._asks_below(run):
            self.wait(run, effects)
        else:
            rest(self, run, effects)

    rest = Departures.rest
    return [(Departures, "rest", patched)]


def _the_first_question_is_all() -> Patches:
    def patched(run: ActiveRun) -> Write:
        write = put_above(run)
        run_id, asked = write.value
        return Write(write.key, write.change, [run_id, asked[:1]])

    put_above = asked_below.put_above
    return [(waiting, "put_above", patched)]


def _all_are_answered_alike() -> Patches:
    def patched(run: ActiveRun, top: Mapping[str, Any]) -> dict[str, str]:
        given = answers_from_above(run, top)
        return dict.fromkeys(given, next(iter(given.values()), ""))

    answers_from_above = asked_below.answers_from_above
    return [(waiting, "answers_from_above", patched)]


def _who_is_over_asks_still() -> Patches:
    def patched(spec: RunSpec, top: Mapping[str, Any]) -> tuple[Write, ...]:
        return ()

    return [(children, "taken_back", patched)]


def _those_in_the_queue_wait_with_it() -> Patches:
    def patched(self: Children, run: ActiveRun, effects: Effects) -> None:
        fill, self._fill = self._fill, lambda *_: None  # type: ignore[method-assign]
        try:
            put_aside(self, run, effects)
        finally:
            self._fill = fill  # type: ignore[method-assign]

    put_aside = Children.put_aside
    return [(Children, "put_aside", patched)]


def _who_asks_below_one_that_leaves_is_forgotten() -> Patches:
    def patched(self: Children, run: ActiveRun, effects: Effects, *, leaves: bool = True) -> None:
        self._forget(run.spec.run_id)
        put_aside(self, run, effects, leaves=leaves)

    put_aside = Children.put_aside
    return [(Children, "put_aside", patched)]


def _who_comes_back_takes_a_place_that_another_has() -> Patches:
    def patched(self: Departures, run: ActiveRun, effects: Effects) -> None:
        link = run.spec.parent
        if link is not None:
            self._queued.get(link.run_id, {}).pop(run.spec.run_id, None)  # type: ignore[attr-defined]
        wake(self, run, effects)

    wake = Departures.wake
    return [(Departures, "wake", patched)]


def _who_is_answered_goes_on_in_a_tree_that_leaves() -> Patches:
    return [(ActiveRun, "leaves_service", property(lambda self: False))]


def _those_aside_with_one_that_asks_stay_so() -> Patches:
    def patched(
        top: ActiveRun, aside: Mapping[str, ActiveRun], served: Mapping[str, ActiveRun]
    ) -> list[str]:
        ids = to_go_on(top, aside, served)
        answered = asked_below.answered_below(top.state.values)
        return [
            one for one in ids if any(f"{run_id}.".startswith(f"{one}.") for run_id in answered)
        ]

    to_go_on = asked_below.to_go_on
    return [(children, "to_go_on", patched)]


def _who_has_no_place_leaves_before_those_below_it() -> Patches:
    return [(Departures, "has_nothing_to_finish", Departures._has_no_round)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "who comes back with an answer takes a place that another has",
        _who_comes_back_takes_a_place_that_another_has,
        frozenset({AT_ONCE}),
    ),
    PlantedBug(
        "who is answered goes on in a tree that is about to leave service",
        _who_is_answered_goes_on_in_a_tree_that_leaves,
        frozenset({APART, ENDS}),
    ),
    PlantedBug(
        "who has no place leaves service before those below it",
        _who_has_no_place_leaves_before_those_below_it,
        frozenset({APART}),
    ),
    PlantedBug(
        "those that were put aside with one that asks stay so when it is answered",
        _those_aside_with_one_that_asks_stay_so,
        frozenset({APART, ENDS, NO_DEADLOCK}),
    ),
    PlantedBug(
        "who asks below a run is forgotten when that leaves service",
        _who_asks_below_one_that_leaves_is_forgotten,
        frozenset({NOWHERE}),
    ),
    PlantedBug(
        "a tree whose user is asked below never waits",
        _the_tree_never_waits,
        frozenset({ENDS, NO_DEADLOCK}),
    ),
    PlantedBug(
        "a tree waits for its user while others in it go on",
        _it_waits_while_others_go_on,
        frozenset({OTHERS_FIRST, APART}),
    ),
    PlantedBug(
        "of what one below asks the first question alone is asked",
        _the_first_question_is_all,
        frozenset({AT_THE_TOP}),
    ),
    PlantedBug(
        "all that one below asks has one answer",
        _all_are_answered_alike,
        frozenset({AS_ANSWERED, GIVEN_ONCE}),
    ),
    PlantedBug(
        "who is over below a run is asked for still",
        _who_is_over_asks_still,
        frozenset({TAKEN_BACK}),
    ),
    PlantedBug(
        "those in the queue wait with the one that asks",
        _those_in_the_queue_wait_with_it,
        frozenset({ENDS, NO_DEADLOCK}),
    ),
)
