"""Faults in the executors and the turn: what they write, count and wait for."""

import asyncio
from dataclasses import replace
from typing import Any

from harness_actors.executors.context import DeltaContext
from harness_actors.results import Usage
from harness_actors.signals import TurnComplete, Waiting
from harness_actors.state import OPEN_CALLS, StateDelta
from harness_actors.tools.reaping import RunReaper
from harness_actors.turn import call_scheduler as tool_calls
from harness_actors.turn import deadline
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.call_scheduler import ToolCalls
from harness_actors.turn.loop import TurnLoop
from harness_actors.turn.meter import TurnMeter
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import (
    AHEAD,
    COUNTED,
    IN_TIME,
    OVERDRAWN,
    PENDING,
    STARTS_ONCE,
    TOOLS_GONE,
)


def _record_without_message() -> Patches:
    take = DeltaContext.take

    def patched(self: DeltaContext) -> StateDelta:
        delta = take(self)
        opened = any(
            write.key == OPEN_CALLS.name and write.change == "set" and write.value
            for write in delta.writes
        )
        if opened and delta.messages and delta.messages[-1].role == "assistant":
            self._messages = [delta.messages[-1]]
            return StateDelta(delta.writes, delta.messages[:-1], delta.events)
        return delta

    return [(DeltaContext, "take", patched)]


def _no_pending_record() -> Patches:
    return [(ToolCalls, "_index", lambda self, plans: ())]


def _effects_before_commit() -> Patches:
    def patched(self: DeltaContext) -> Any:
        delta = self.take()
        if delta:
            self._send(delta)
        return asyncio.sleep(0)

    return [(DeltaContext, "flush", patched)]


def _repair_runs_everything_again() -> Patches:
    index = ToolCalls._index

    def patched(self: ToolCalls, plans: Any) -> Any:
        return tuple(replace(call, idempotent=True) for call in index(self, plans))

    return [
        (ToolCalls, "_index", patched),
        (tool_calls, "_still_refused", lambda plan: plan),
    ]


def _refused_calls_run_after_a_crash() -> Patches:
    return [(tool_calls, "_still_refused", lambda plan: plan)]


def _bounds_are_not_looked_at() -> Patches:
    return [(Bounds, "reached", lambda self, usage: None)]


def _rounds_are_not_counted() -> Patches:
    def patched(self: TurnMeter) -> None:
        self._pending = Usage()
        write(self)

    write = TurnMeter.write
    return [(TurnMeter, "write", patched)]


def _rounds_ahead() -> Patches:
    async def patched(
        self: TurnLoop, ended: TurnComplete | Waiting | None
    ) -> TurnComplete | Waiting | None:
        left = await end_round(self, ended)
        self._awaited = None
        return left

    end_round = TurnLoop._end_round
    return [(TurnLoop, "_end_round", patched)]


def _nothing_is_reaped() -> Patches:
    async def patched(self: RunReaper, run_id: str) -> None:
        return

    return [(RunReaper, "end_run", patched)]


def _reaping_is_not_awaited() -> Patches:
    async def patched(self: RunReaper, run_id: str) -> None:
        reaping = asyncio.ensure_future(end_run(self, run_id))
        reaping.add_done_callback(lambda done: None)

    end_run = RunReaper.end_run
    return [(RunReaper, "end_run", patched)]


def _hung_work_is_waited_for() -> Patches:
    return [(deadline, "GRACE_S", None)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "the pending record lacks the assistant message",
        _record_without_message,
        frozenset({PENDING}),
    ),
    PlantedBug("there is no pending record", _no_pending_record, frozenset({PENDING})),
    PlantedBug(
        "effects begin before their record is on disk", _effects_before_commit, frozenset({PENDING})
    ),
    PlantedBug(
        "everything that was open runs again",
        _repair_runs_everything_again,
        frozenset({STARTS_ONCE}),
    ),
    PlantedBug(
        "calls that were refused run after a crash",
        _refused_calls_run_after_a_crash,
        frozenset({OVERDRAWN, STARTS_ONCE}),
    ),
    PlantedBug("bounds are not looked at", _bounds_are_not_looked_at, frozenset({OVERDRAWN})),
    PlantedBug("rounds are not counted", _rounds_are_not_counted, frozenset({COUNTED})),
    PlantedBug("turns run ahead of the disk", _rounds_ahead, frozenset({AHEAD})),
    PlantedBug(
        "nothing is reaped before a run goes on", _nothing_is_reaped, frozenset({TOOLS_GONE})
    ),
    PlantedBug("reaping is not awaited", _reaping_is_not_awaited, frozenset({TOOLS_GONE})),
    PlantedBug("what hangs is waited for", _hung_work_is_waited_for, frozenset({IN_TIME})),
)
