"""Faults in what runs at once, and in what is not made again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from harness_actors.ports import Tool
from harness_actors.turn import execution, lanes, repeats, waves
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.repeats import RepeatGuard
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import (
    ANEW,
    APART,
    AT_ONCE,
    FRESH,
    OVER,
    OWN_RESULT,
    WRITES_ALONE,
)


def _writes_run_in_waves() -> Patches:
    def patched(plan: PlannedCall) -> frozenset[str] | None:
        return None if plan.alone else waves.NO_KEYS

    return [(waves, "shared_keys", patched)]


def _keys_are_not_looked_at() -> Patches:
    def patched(plan: PlannedCall) -> frozenset[str] | None:
        return None if shared_keys(plan) is None else waves.NO_KEYS

    shared_keys = waves.shared_keys
    return [(waves, "shared_keys", patched)]


def _waves_run_without_a_bound() -> Patches:
    async def patched(pieces: Sequence[Callable[[], Awaitable[Any]]], most: int) -> list[Any]:
        return await lanes.in_lanes(pieces, len(pieces))

    return [(execution, "in_lanes", patched)]


def _results_stand_in_the_order_of_their_ends() -> Patches:
    async def patched(pieces: Sequence[Callable[[], Awaitable[Any]]], most: int) -> list[Any]:
        ended: list[Any] = []

        async def noted(piece: Callable[[], Awaitable[Any]]) -> None:
            ended.append(await piece())

        await lanes.in_lanes([lambda p=piece: noted(p) for piece in pieces], most)  # type: ignore[misc]
        return ended

    return [(execution, "in_lanes", patched)]


def _a_cut_turn_leaves_its_wave_alone() -> Patches:
    async def patched(tasks: "Sequence[asyncio.Future[None]]") -> None:
        return

    return [(lanes, "_ended", patched)]


def _writes_make_nothing_old() -> Patches:
    return [(RepeatGuard, "begins", lambda self, plan: None)]


def _the_log_is_read_past_what_was_written() -> Patches:
    def patched(self: RepeatGuard, begins_behind: bytes) -> Iterator[tuple[bytes, int]]:
        may_write = vars(repeats)["_may_write"]
        vars(repeats)["_may_write"] = lambda tool: False
        try:
            return iter(list(found(self, begins_behind)))
        finally:
            vars(repeats)["_may_write"] = may_write

    found = RepeatGuard._found
    return [(RepeatGuard, "_found", patched)]


def _volatile_tools_are_remembered() -> Patches:
    def patched(tool: Tool, call: Any) -> bytes | None:
        if tool.spec.name == "watch":
            return f"{call.name} {call.arguments}".encode()
        return key(tool, call)

    key = repeats._key
    return [(repeats, "_key", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("writes run in waves", _writes_run_in_waves, frozenset({WRITES_ALONE})),
    PlantedBug("resource keys are not looked at", _keys_are_not_looked_at, frozenset({APART})),
    PlantedBug("waves run without a bound", _waves_run_without_a_bound, frozenset({AT_ONCE})),
    PlantedBug(
        "results stand in the order of their ends",
        _results_stand_in_the_order_of_their_ends,
        frozenset({OWN_RESULT}),
    ),
    PlantedBug(
        "a turn that is cut leaves its wave alone",
        _a_cut_turn_leaves_its_wave_alone,
        frozenset({OVER}),
    ),
    PlantedBug("writes make nothing old", _writes_make_nothing_old, frozenset({FRESH})),
    PlantedBug(
        "the log is read past what was written",
        _the_log_is_read_past_what_was_written,
        frozenset({FRESH}),
    ),
    PlantedBug("volatile tools are remembered", _volatile_tools_are_remembered, frozenset({ANEW})),
)
