"""Faults in the coordinator: what it decides, and what it remembers."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.coordination import run_changes
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.budget import Budget
from harness_actors.coordination.closing import Closing
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.deadlines import Deadlines
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import CANCELLED, last_words
from harness_actors.coordination.losses import Losses
from harness_actors.coordination.protocol import Changed, Committed, Deliver, Envelope, Slot
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.coordination.stopping import Stopping
from harness_actors.records import SnapshotTaken
from harness_actors.state import USAGE, SharedState, StateDelta
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import (
    ACKNOWLEDGED,
    ALONE,
    ALONG_EDGES,
    ANSWERED,
    COUNTED,
    ENDS,
    IN_TIME,
    LEFT,
    NEIGHBOURS,
    OVERDRAWN,
    PENDING,
    SPENT,
    STATE,
    STOPPED,
    STRANGERS,
    TAKEN_ONCE,
)


def _no_step_check() -> Patches:
    received = Coordinator.received

    def patched(self: Coordinator, slot: Slot, envelope: Envelope) -> Effects:
        run = self.runs.get(envelope.run_id)
        if run is not None and envelope.hop_number < run.hop_number and slot == run.slot:
            envelope = replace(envelope, hop_number=run.hop_number, seq=run.received + 1)
        return received(self, slot, envelope)

    return [(Coordinator, "received", patched)]


def _answers_twice() -> Patches:
    received = Coordinator.received

    def patched(self: Coordinator, slot: Slot, envelope: Envelope) -> Effects:
        run = self.runs.get(envelope.run_id)
        if run is not None and isinstance(envelope.body, Changed):
            run.received = min(run.received, envelope.seq - 1)
        return received(self, slot, envelope)

    return [(Coordinator, "received", patched)]


def _snapshot_misses_an_entry() -> Patches:
    change = RunChanges.change

    def patched(
        self: RunChanges, run: ActiveRun, delta: Any, effects: Effects, **facts: Any
    ) -> None:
        change(self, run, delta, effects, **facts)
        for place, entry in enumerate(effects.entries):
            if isinstance(entry, SnapshotTaken):
                values = {k: v for k, v in entry.values.items() if k != USAGE.name}
                effects.entries[place] = replace(entry, values=values)

    return [(RunChanges, "change", patched)]


def _losses_are_not_counted() -> Patches:
    lost = Losses._lost

    def patched(self: Losses, run: ActiveRun, *facts: Any) -> None:
        run.losses = 0
        lost(self, run, *facts)

    return [(Losses, "_lost", patched)]


def _losses_count_for_all() -> Patches:
    lost = Losses._lost

    def patched(self: Losses, run: ActiveRun, *facts: Any) -> None:
        run.losses += 2
        lost(self, run, *facts)

    return [(Losses, "_lost", patched)]


def _budget_from_zero() -> Patches:
    adopt = Coordinator.adopt

    def patched(self: Coordinator, stored: Any, **facts: Any) -> Effects:
        stored.state.values.pop(USAGE.name, None)
        return adopt(self, stored, **facts)

    return [(Coordinator, "adopt", patched)]


def _another_runs_log() -> Patches:
    deliver = Dispatch.deliver

    def patched(self: Dispatch, run: ActiveRun, effects: Effects) -> None:
        others = [other for other in self.runs.values() if other is not run]
        deliver(self, run, effects)
        for place, post in enumerate(effects.posts):
            body = post.envelope.body
            if isinstance(body, Deliver) and body.log and others and body.log_from:
                log = tuple(others[0].state.log[body.log_from :])
                envelope = replace(post.envelope, body=replace(body, log=log))
                effects.posts[place] = replace(post, envelope=envelope)

    return [(Dispatch, "deliver", patched)]


def _ends_with_open_calls() -> Patches:
    def patched(state: SharedState, end: Any, **facts: Any) -> StateDelta:
        words = last_words(state, end, **facts)
        return StateDelta(words.writes, (), words.events)

    return [(run_changes, "last_words", patched)]


def _everything_is_current() -> Patches:
    return [(Dispatch, "is_current", lambda self, envelope: True)]


def _park_is_forgotten() -> Patches:
    return [(Stopping, "_ask_to_park", lambda self, run, effects: None)]


def _parked_runs_keep_their_command() -> Patches:
    put_aside = RunChanges.put_aside

    def patched(
        self: RunChanges, run: ActiveRun, delta: Any, effects: Effects, **facts: Any
    ) -> None:
        put_aside(self, run, delta, effects, **facts)
        effects.entries.pop()

    return [(RunChanges, "put_aside", patched)]


def _cut_is_not_told() -> Patches:
    def patched(self: Stopping, run: ActiveRun, effects: Effects) -> None:
        self._dispatch.leave(run, effects)

    return [(Stopping, "_cut", patched)]


def _budget_forgets_what_ended() -> Patches:
    def patched(self: Budget, run_id: str) -> None:
        self.spent_usd -= self._unfinished_usd.pop(run_id, 0.0)

    return [(Budget, "end", patched)]


def _budget_is_noted_by_nobody() -> Patches:
    note = Closing.note

    def patched(self: Closing, run: ActiveRun, effects: Effects, *, restored: bool = False) -> None:
        note(self, run, effects)

    async def attach(self: CoordinatorHost, secrets: Any, budget_usd: float | None = None) -> None:
        await attach_with(self, secrets)

    attach_with = CoordinatorHost.attach
    return [(Closing, "note", patched), (CoordinatorHost, "attach", attach)]


def _spent_budget_is_not_told() -> Patches:
    return [(Closing, "close_if_spent", lambda self, effects: None)]


def _cancelled_runs_end_with_their_round() -> Patches:
    stop = Coordinator.stop

    def patched(self: Coordinator, run_id: str, mode: str) -> Effects:
        run, effects = self.runs.get(run_id), Effects()
        if mode != "cancel" or run is None or run.slot is None:
            return stop(self, run_id, mode)
        run.closing = CANCELLED
        self._dispatch.stop_at_round(run, effects)
        return effects

    return [(Coordinator, "stop", patched)]


def _time_is_looked_at_in_turns() -> Patches:
    return [(Deadlines, "next", lambda self: None)]


def _receipts_for_all() -> Patches:
    def patched(self: Dispatch, batch: Iterable[Envelope]) -> tuple[Envelope, ...]:
        return tuple(
            replace(envelope, body=Committed(envelope.seq))
            for envelope in batch
            if isinstance(envelope.body, Changed)
        )

    return [(Dispatch, "receipts", patched)]


def _receipts_are_given_once() -> Patches:
    receipts = Dispatch.receipts

    def patched(self: Dispatch, batch: Iterable[Envelope]) -> tuple[Envelope, ...]:
        told = receipts(self, batch)
        for envelope in told:
            self.runs[envelope.run_id].receipt = 0
        return told

    return [(Dispatch, "receipts", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "a change that was not taken is called committed", _receipts_for_all, frozenset({PENDING})
    ),
    PlantedBug("a commit is told once, heard or not", _receipts_are_given_once, frozenset({ENDS})),
    PlantedBug(
        "results of an older hop are accepted",
        _no_step_check,
        frozenset({ALONE, ANSWERED, STATE, ALONG_EDGES, TAKEN_ONCE}),
    ),
    PlantedBug(
        "what a host says twice is taken twice",
        _answers_twice,
        frozenset({ANSWERED, STATE, TAKEN_ONCE, COUNTED}),
    ),
    PlantedBug("a snapshot misses an entry", _snapshot_misses_an_entry, frozenset({STATE})),
    PlantedBug("losses are not counted", _losses_are_not_counted, frozenset({ENDS})),
    PlantedBug(
        "losses count for runs without a tool in flight",
        _losses_count_for_all,
        frozenset({NEIGHBOURS}),
    ),
    PlantedBug(
        "the budget begins at zero after a resume",
        _budget_from_zero,
        frozenset({STATE, COUNTED, OVERDRAWN}),
    ),
    PlantedBug("a run is sent another run's log", _another_runs_log, frozenset({STATE, STRANGERS})),
    PlantedBug("runs end with open calls", _ends_with_open_calls, frozenset({ANSWERED})),
    PlantedBug(
        "what is old is posted all the same", _everything_is_current, frozenset({ALONE, STATE})
    ),
    PlantedBug("a request to park is forgotten", _park_is_forgotten, frozenset({ACKNOWLEDGED})),
    PlantedBug(
        "parked runs go on by themselves", _parked_runs_keep_their_command, frozenset({STOPPED})
    ),
    PlantedBug("a hop that was cut is not told", _cut_is_not_told, frozenset({LEFT, STOPPED})),
    PlantedBug(
        "the budget forgets what runs that are over have cost",
        _budget_forgets_what_ended,
        frozenset({SPENT}),
    ),
    PlantedBug(
        "the budget is lost with its coordinator", _budget_is_noted_by_nobody, frozenset({SPENT})
    ),
    PlantedBug(
        "a spent budget is looked at when a run begins",
        _spent_budget_is_not_told,
        frozenset({SPENT}),
    ),
    PlantedBug(
        "cancelled runs end after their round",
        _cancelled_runs_end_with_their_round,
        frozenset({ACKNOWLEDGED, IN_TIME}),
    ),
    PlantedBug(
        "wall time is looked at by turns alone", _time_is_looked_at_in_turns, frozenset({IN_TIME})
    ),
)
