"""Faults in what executors observe: where it is kept, how it is found again, when it is over."""

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from harness_actors.executors import context
from harness_actors.executors.context import DeltaContext
from harness_actors.executors.observations import Asked, Observations
from harness_actors.state import OBSERVED, StateDelta
from tests.simulation.observing import MADE_ONCE, OF_ITS_PLACE, ON_DISK_BEFORE
from tests.simulation.planted.bug import Patches, PlantedBug


def _nobody_looks_what_is_on_disk() -> Patches:
    def patched(executor: str, stored: Iterable[Mapping[str, Any]]) -> Observations:
        return Observations(executor, ())

    return [(context, "Observations", patched)]


def _places_do_not_end() -> Patches:
    def patched(self: DeltaContext) -> None:
        self._observations = None

    return [(DeltaContext, "close_place", patched)]


def _one_question_is_asked_once() -> Patches:
    def patched(self: Observations, kind: object, question: Any) -> Asked:
        asked = ask(self, kind, question)
        return Asked(asked.executor, asked.kind, asked.question, 1)

    ask = Observations.ask
    return [(Observations, "ask", patched)]


def _observations_come_with_the_answer() -> Patches:
    def patched(self: DeltaContext) -> Awaitable[None]:
        held = [write for write in self._writes if write.key.startswith(OBSERVED)]
        self._writes = [write for write in self._writes if write not in held]
        delta = StateDelta(tuple(self._writes), tuple(self._messages), tuple(self._events))
        self._writes, self._messages, self._events = held, [], []
        return self._send(delta)

    return [(DeltaContext, "flush", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "nobody looks what was observed before",
        _nobody_looks_what_is_on_disk,
        frozenset({MADE_ONCE}),
    ),
    PlantedBug(
        "what was observed is known for ever",
        _places_do_not_end,
        frozenset({OF_ITS_PLACE}),
    ),
    PlantedBug(
        "a question that is asked again is the same one",
        _one_question_is_asked_once,
        frozenset({OF_ITS_PLACE}),
    ),
    PlantedBug(
        "observations leave with the answer alone",
        _observations_come_with_the_answer,
        frozenset({ON_DISK_BEFORE}),
    ),
)
