"""Faults in how the actors beside the executors are kept: the model of a cell, its stream actor."""

import asyncio
from dataclasses import replace
from typing import Any

from harness_actors.actors.coordinator import roster
from harness_actors.actors.coordinator.roster import Seats
from harness_actors.actors.liveness import Death, until_dead, until_gone
from harness_actors.actors.runtime import TextCursor, Texts
from harness_actors.actors.simulated.cell import SimulatedHostStarter
from harness_actors.actors.text.listening import Listener
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS, SIDE_GONE, SIDE_REPLACED, SIDE_SPARED, WORDS


def _replaced_beside_the_living() -> Patches:
    async def patched(peer: Any, marks: Any, signs: Any, *others: Any, **settings: Any) -> Death:
        if peer.address:
            return Death(await until_dead(peer, signs))
        return await until_gone(peer, marks, signs, *others, **settings)

    return [(roster, "until_gone", patched)]


def _nobody_watches_them() -> Patches:
    async def patched(peer: Any, *others: Any, **settings: Any) -> Death:
        if peer.address:
            await asyncio.Event().wait()
        return await until_gone(peer, *others, **settings)

    return [(roster, "until_gone", patched)]


def _each_stops_the_cell() -> Patches:
    return [(Seats, "_stops_cell", lambda self, slot: True)]


def _each_is_elsewhere() -> Patches:
    def patched(self: SimulatedHostStarter, kind: Any, slot: Any, incarnation: int) -> str:
        found = address(self, kind, slot, incarnation)
        return f"{found}.{incarnation}" if kind.reachable == "at a port" else found

    address = SimulatedHostStarter._address
    return [(SimulatedHostStarter, "_address", patched)]


def _each_has_one_name() -> Patches:
    def patched(self: SimulatedHostStarter, kind: Any, slot: Any, incarnation: int) -> str:
        return address(self, kind, slot, 1)

    address = SimulatedHostStarter._address
    return [(SimulatedHostStarter, "_address", patched)]


def _readers_take_one_for_another() -> Patches:
    async def patched(self: Listener, run_id: str, cursor: TextCursor | None) -> Texts:
        if run_id not in self._asked_at:
            await self.subscribe([run_id])
        return await texts(self, run_id, cursor and replace(cursor, stream=self._stream))

    texts = Listener.texts
    return [(Listener, "texts", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "side actors are replaced beside the living",
        _replaced_beside_the_living,
        frozenset({SIDE_GONE}),
    ),
    PlantedBug(
        "nobody watches side actors", _nobody_watches_them, frozenset({SIDE_REPLACED, ENDS})
    ),
    PlantedBug(
        "a side actor that does not start stops the cell",
        _each_stops_the_cell,
        frozenset({SIDE_SPARED}),
    ),
    PlantedBug("each hosted model is elsewhere", _each_is_elsewhere, frozenset({ENDS})),
    PlantedBug("all stream actors have one name", _each_has_one_name, frozenset({WORDS})),
    PlantedBug(
        "readers take one stream actor for another",
        _readers_take_one_for_another,
        frozenset({WORDS}),
    ),
)
