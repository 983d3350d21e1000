"""Faults in the gates: what becomes of verdicts, and of what hooks have changed."""

from collections.abc import Awaitable, Callable
from typing import Any

from harness_actors.executors import context
from harness_actors.executors.observations import Observations
from harness_actors.turn import call_gates
from harness_actors.turn.call_gates import CallGates
from harness_actors.turn.hook_calls import Asked, HookCalls
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.stalls import Stalls
from tests.simulation.judging import AS_CHANGED, ASKED_ONCE, DENIED_RUNS
from tests.simulation.planted.bug import Patches, PlantedBug


def _denials_are_not_heard() -> Patches:
    def patched(plan: PlannedCall, plain: dict[str, Any]) -> PlannedCall:
        return judged(plan, {name: text for name, text in plain.items() if name != "denied"})

    judged = call_gates._judged
    return [(call_gates, "_judged", patched)]


def _denials_are_of_the_message_before() -> Patches:
    # Where rules of circles watch a run, the round that Repair has closed has its own place.
    unwatched = property(lambda self: False)
    return [(CallGates, "_message", lambda self: 0), (Stalls, "is_due", unwatched)]


def _nothing_is_on_record() -> Patches:
    async def patched(
        self: HookCalls,
        kind: Any,
        about: Any,
        ask: Callable[[Asked], Awaitable[None]],
        **told: Any,
    ) -> Asked:
        asked = Asked()
        await ask(asked)
        return asked

    return [(HookCalls, "observe", patched)]


def _each_hook_sees_what_the_model_wrote() -> Patches:
    def patched(self: CallGates, plan: PlannedCall, arguments: str) -> Any:
        return made(self, plan, plan.call.arguments)

    made = CallGates._call_event
    return [(CallGates, "_call_event", patched)]


def _nobody_looks_what_was_said_before() -> Patches:
    return [(context, "Observations", lambda executor, stored: Observations(executor, ()))]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("a call that was denied is made", _denials_are_not_heard, frozenset({DENIED_RUNS})),
    PlantedBug(
        "a verdict is that of an earlier message with the same id",
        _denials_are_of_the_message_before,
        frozenset({DENIED_RUNS, AS_CHANGED}),
    ),
    PlantedBug("verdicts are not on record", _nothing_is_on_record, frozenset({ASKED_ONCE})),
    PlantedBug(
        "hooks do not see what one before has changed",
        _each_hook_sees_what_the_model_wrote,
        frozenset({AS_CHANGED}),
    ),
    PlantedBug(
        "nobody looks what hooks have said before",
        _nobody_looks_what_was_said_before,
        frozenset({ASKED_ONCE}),
    ),
)
