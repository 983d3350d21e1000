"""Faults in what becomes of the values that runs are to come to."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from harness_actors.executors import stop_decision
from harness_actors.outputs.completion import TypedCompletion
from harness_actors.results import Status
from harness_actors.signals import RunEnd, TurnComplete
from harness_actors.turn import one_call
from harness_actors.turn.gates import Gates
from harness_actors.turn.output_gate import Came, OutputGate
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.valuing import FITS, LOOKED_AT, TOLD


def _what_does_not_fit_is_taken() -> Patches:
    async def patched(self: OutputGate, answer: str) -> Came:
        came = await at_end(self, answer)
        return Came(value=_value(answer)) if came.cause else came

    at_end = OutputGate.at_end
    return [(OutputGate, "at_end", patched)]


def _value(answer: str) -> Any:
    return orjson.loads(answer) if answer.startswith("{") else {"run": "none", "at": 0}


def _calls_are_not_looked_at() -> Patches:
    async def patched(self: TypedCompletion, arguments: str, context: Any) -> str:
        return "Work recorded as complete: done"

    return [(TypedCompletion, "run", patched)]


def _values_are_lost() -> Patches:
    def patched(status: Status, kind: str, turn: TurnComplete, *more: Any, **named: Any) -> RunEnd:
        return end(status, kind, replace(turn, output=None), *more, **named)

    end: Callable[..., RunEnd] = vars(stop_decision)["_end"]
    return [(stop_decision, "_end", patched)]


def _who_is_not_done_keeps_its_value() -> Patches:
    def patched(status: Status, kind: str, turn: TurnComplete, *more: Any, **named: Any) -> RunEnd:
        return replace(end(status, kind, turn, *more, **named), output=turn.output)

    end: Callable[..., RunEnd] = vars(stop_decision)["_end"]
    return [(stop_decision, "_end", patched)]


def _a_flaw_is_told_to_the_model() -> Patches:
    class NeverRaisedError(Exception):
        """Nothing raises it."""

    return [(one_call, "OutputCodeError", NeverRaisedError)]


def _what_is_wrong_is_not_told() -> Patches:
    async def patched(self: OutputGate, answer: str) -> Came:
        came = await at_end(self, answer)
        return replace(came, cause="try again") if came.cause else came

    at_end = OutputGate.at_end
    return [(OutputGate, "at_end", patched)]


def _another_gate_hides_the_value() -> Patches:
    async def patched(self: Gates, ended: TurnComplete) -> TurnComplete:
        came = await at_end(self, ended)
        return replace(came, output=None) if came.ending == "text" else came

    at_end = Gates.at_end
    return [(Gates, "at_end", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "an answer that does not fit is taken",
        _what_does_not_fit_is_taken,
        frozenset({FITS}),
    ),
    PlantedBug(
        "a value in a call is not looked at", _calls_are_not_looked_at, frozenset({FITS, LOOKED_AT})
    ),
    PlantedBug("values are lost", _values_are_lost, frozenset({FITS})),
    PlantedBug(
        "who is not done keeps its value", _who_is_not_done_keeps_its_value, frozenset({FITS})
    ),
    PlantedBug(
        "a flaw of a type is told to the model", _a_flaw_is_told_to_the_model, frozenset({TOLD})
    ),
    PlantedBug(
        "nobody is told in what a value does not fit",
        _what_is_wrong_is_not_told,
        frozenset({TOLD}),
    ),
    PlantedBug("gates take a value away", _another_gate_hides_the_value, frozenset({FITS})),
)
