"""Faults around calls: in hooks that fail or replace, in capabilities, and in middleware."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness_actors.policies import Hook, middleware
from harness_actors.policies.middleware import _Around, _Passage
from harness_actors.ports import Tool
from harness_actors.turn import call_gates, hook_calls, preparation, questions
from harness_actors.turn.around import AroundTools
from harness_actors.turn.bounds import Due
from harness_actors.turn.call_gates import WITHHELD as UNSEEN_TEXTS
from harness_actors.turn.call_gates import CallGates
from harness_actors.turn.deadline import Allowance, run_within
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolOutcome
from tests.simulation.judging import (
    AS_CHANGED,
    AS_REPLACED,
    CAPABLE,
    DENIED_RUNS,
    TOLD_OF,
    UNSEEN,
)
from tests.simulation.passing import AS_PASSED, ENDS_WITH_IT, NOT_PASSED, WITHHELD
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS, STARTS_ONCE


def _changes_are_not_heard() -> Patches:
    def patched(plan: PlannedCall, plain: dict[str, Any]) -> PlannedCall:
        return replace(judged(plan, plain), arguments=None)

    judged = call_gates._judged
    return [(call_gates, "_judged", patched)]


def _hooks_that_fail_allow() -> Patches:
    return [(Hook, "denies_on_error", lambda self, kind: False)]


def _hooks_that_hang_are_waited_for() -> Patches:
    async def patched(allowance: Allowance, name: str, begin: Any) -> Any:
        return await run_within(Allowance(Due(None)), name, begin)

    return [(hook_calls, "run_within", patched)]


def _nobody_can_be_asked_and_it_is_made() -> Patches:
    def patched(plan: PlannedCall, plain: dict[str, Any]) -> PlannedCall:
        return judged(plan, {name: text for name, text in plain.items() if name != "asks"})

    judged = call_gates._judged
    return [(call_gates, "_judged", patched)]


def _what_was_refused_is_held() -> Patches:
    def patched(plans: Sequence[PlannedCall]) -> tuple[str, ...]:
        return tuple(plan.call.id for plan in plans)

    return [(questions, "_to_begin", patched)]


def _replaced_where_it_succeeded() -> Patches:
    async def patched(self: CallGates, plan: PlannedCall, outcome: ToolOutcome) -> ToolOutcome:
        left = await after_call(self, plan, outcome)
        return outcome if outcome.is_error else left

    after_call = CallGates.after_call
    return [(CallGates, "after_call", patched)]


def _told_of_what_succeeded() -> Patches:
    async def patched(self: CallGates, plan: PlannedCall, outcome: ToolOutcome) -> ToolOutcome:
        return outcome if outcome.is_error else await after_call(self, plan, outcome)

    after_call = CallGates.after_call
    return [(CallGates, "after_call", patched)]


def _withheld_where_it_failed() -> Patches:
    async def patched(self: CallGates, plan: PlannedCall, outcome: ToolOutcome) -> ToolOutcome:
        left = await after_call(self, plan, outcome)
        withheld = left.text in UNSEEN_TEXTS.values()
        return outcome if withheld and not outcome.is_error else left

    after_call = CallGates.after_call
    return [(CallGates, "after_call", patched)]


def _every_tool_is_offered() -> Patches:
    def patched(agent: Any) -> Sequence[Tool]:
        return tuple(agent.tools)

    return [(preparation, "offered_tools", patched)]


def _nothing_stands_around_tools() -> Patches:
    def patched(self: AroundTools, tool: Tool, call: Any, context: Any) -> Any:
        return tool.run(call.arguments, context)

    return [(AroundTools, "run", patched)]


def _middleware_changes_nothing() -> Patches:
    return [(_Around, "only_arguments", lambda self, request: self.original or request)]


def _middleware_may_call_next_again() -> Patches:
    return [(_Passage, "_check_may_begin", lambda self: None)]


def _what_is_apart_goes_on() -> Patches:
    async def patched(self: _Passage) -> None:
        await asyncio.sleep(0)

    return [(_Passage, "_end_what_is_apart", patched)]


def _a_failure_after_it_is_overlooked() -> Patches:
    async def patched_next(self: _Passage, request: Any) -> Any:
        vars(self)["told"] = told = await next_(self, request)
        return told

    async def patched(self: _Passage, given: Any) -> Any:
        try:
            return await value(self, given)
        except RuntimeError:
            if "told" not in vars(self):
                raise
            return vars(self)["told"]

    next_, value = _Passage._next, _Passage._value
    return [(_Passage, "_next", patched_next), (_Passage, "_value", patched)]


def _middleware_takes_as_long_as_it_likes() -> Patches:
    return [(middleware, "OWN_TIME_S", 1e6)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("changes of hooks are not heard", _changes_are_not_heard, frozenset({AS_CHANGED})),
    PlantedBug("hooks that fail allow", _hooks_that_fail_allow, frozenset({DENIED_RUNS})),
    PlantedBug(
        "hooks that hang are waited for", _hooks_that_hang_are_waited_for, frozenset({ENDS})
    ),
    PlantedBug(
        "a call is made where nobody can be asked about it",
        _nobody_can_be_asked_and_it_is_made,
        frozenset({DENIED_RUNS}),
    ),
    PlantedBug(
        "what was refused waits with the rest", _what_was_refused_is_held, frozenset({DENIED_RUNS})
    ),
    PlantedBug(
        "hooks replace only what succeeded", _replaced_where_it_succeeded, frozenset({AS_REPLACED})
    ),
    PlantedBug("hooks hear only of what succeeded", _told_of_what_succeeded, frozenset({TOLD_OF})),
    PlantedBug(
        "a result is withheld only where its call failed",
        _withheld_where_it_failed,
        frozenset({UNSEEN}),
    ),
    PlantedBug("every tool is offered", _every_tool_is_offered, frozenset({CAPABLE})),
    PlantedBug(
        "nothing stands around tools",
        _nothing_stands_around_tools,
        frozenset({NOT_PASSED}),
    ),
    PlantedBug(
        "what middleware changes is lost", _middleware_changes_nothing, frozenset({AS_PASSED})
    ),
    PlantedBug(
        "middleware may make any call again",
        _middleware_may_call_next_again,
        frozenset({STARTS_ONCE}),
    ),
    PlantedBug(
        "what middleware begins apart goes on", _what_is_apart_goes_on, frozenset({ENDS_WITH_IT})
    ),
    PlantedBug(
        "middleware that fails after a call is overlooked",
        _a_failure_after_it_is_overlooked,
        frozenset({WITHHELD}),
    ),
    PlantedBug(
        "middleware takes as long as it likes",
        _middleware_takes_as_long_as_it_likes,
        frozenset({ENDS}),
    ),
)
