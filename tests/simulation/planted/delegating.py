"""Faults in how turns delegate: what begins, what waits, and what comes back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness_actors.signals import Waiting
from harness_actors.state import CHILD_RESULTS, QUESTIONS, Questions
from harness_actors.turn.call_scheduler import ToolCalls
from harness_actors.turn.delegation import Delegating, delegates
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolOutcome
from harness_actors.turn.questions import Asking, _to_begin
from tests.simulation.approving import KNOWN, ONCE_ASKED
from tests.simulation.kin import GIVEN, WITH_CALL
from tests.simulation.kin_at_work import IN_ORDER
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import PENDING, STARTS_ONCE

Calls = Sequence[PlannedCall]


def _delegated_last() -> Patches:
    """What stands behind a call that delegates is made before it."""

    async def patched(self: ToolCalls, plans: Sequence[PlannedCall], **facts: Any) -> Any:
        return await run_in_order(self, sorted(plans, key=delegates), **facts)

    run_in_order = ToolCalls._run_in_order
    return [(ToolCalls, "_run_in_order", patched)]


def _results_in_turn() -> Patches:
    """Results are given in the order of the ends."""

    def patched(self: Delegating, wave: Calls, left: Calls) -> Sequence[ToolOutcome] | Waiting:
        ended = [one.call_id for one in self._context.get(CHILD_RESULTS) or ()]
        found = outcomes(self, wave, left)
        if isinstance(found, Waiting) or len(ended) != len(wave):
            return found
        by_call = {plan.call.id: one for plan, one in zip(wave, found, strict=True)}
        return [by_call[call_id] for call_id in ended if call_id in by_call]

    outcomes = Delegating.outcomes
    return [(Delegating, "outcomes", patched)]


def _refused_when_it_is_over() -> Patches:
    return [(Delegating, "ended", lambda self, plan, tool: plan)]


def _refused_ones_wait_too() -> Patches:
    def patched(self: Delegating, plan: PlannedCall) -> bool:
        return delegates(plan) and not self._has_ended(plan)

    return [(Delegating, "is_begun_by", patched)]


def _results_are_dropped_with_the_first() -> Patches:
    def patched(self: Delegating, wave: Calls, left: Calls) -> Sequence[ToolOutcome] | Waiting:
        return outcomes(self, wave, ())

    outcomes = Delegating.outcomes
    return [(Delegating, "outcomes", patched)]


def _what_waits_is_let_go() -> Patches:
    """What waits for approval behind a call that delegates is on disk as begun."""

    def patched(self: Asking, waiting: Calls) -> bool:
        return release(self, ())

    release = Asking.release
    return [(Asking, "release", patched)]


def _answers_are_forgotten() -> Patches:
    def patched(self: Asking, plans: Calls) -> None:
        self._context.set(QUESTIONS, Questions(asked=(), held=_to_begin(plans)))

    return [(Asking, "hold", patched)]


def _begun_by_another_call() -> Patches:
    def patched(self: Delegating, wave: Calls, left: Calls) -> Sequence[ToolOutcome] | Waiting:
        waiting = outcomes(self, wave, left)
        if not isinstance(waiting, Waiting):
            return waiting
        ids = [one.call_id for one in waiting.children]
        turned = zip(waiting.children, reversed(ids), strict=True)
        return replace(waiting, children=tuple(replace(one, call_id=of) for one, of in turned))

    outcomes = Delegating.outcomes
    return [(Delegating, "outcomes", patched)]


BUGS = (
    PlantedBug(
        "calls behind one that delegates begin before it", _delegated_last, frozenset({IN_ORDER})
    ),
    PlantedBug("results come in the order of the ends", _results_in_turn, frozenset({GIVEN})),
    PlantedBug(
        "a call is refused whose child has ended", _refused_when_it_is_over, frozenset({GIVEN})
    ),
    PlantedBug(
        "calls are not announced behind one that is refused a child",
        _refused_ones_wait_too,
        frozenset({PENDING, STARTS_ONCE}),
    ),
    PlantedBug(
        "results of children are dropped with the first of them",
        _results_are_dropped_with_the_first,
        frozenset({GIVEN}),
    ),
    PlantedBug(
        "what waits for approval behind a call that delegates is let go",
        _what_waits_is_let_go,
        frozenset({KNOWN}),
    ),
    PlantedBug(
        "answers are forgotten when a call delegates",
        _answers_are_forgotten,
        frozenset({ONCE_ASKED}),
    ),
    PlantedBug(
        "children are begun by each other's calls", _begun_by_another_call, frozenset({WITH_CALL})
    ),
)
