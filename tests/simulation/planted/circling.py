"""Faults in how a run is told that it goes in circles, and ended by it."""

from typing import Any

from harness_actors.config import StallConfig
from harness_actors.events import StopDecided
from harness_actors.executors import StopDecision
from harness_actors.messages import Message
from harness_actors.progress import Stall, run_progress
from harness_actors.signals import TurnComplete
from harness_actors.state import STALLED_ROUNDS
from harness_actors.turn.gates import Gates
from harness_actors.turn.stalls import WARNING, Stalls
from tests.simulation.circling import AS_HOOKS_SAY, ENDED, NOT_BEFORE, ONE_DECISION, TOLD_ONCE
from tests.simulation.planted.bug import Patches, PlantedBug


def _told_each_time() -> Patches:
    def patched(self: Stalls, stall: Stall | None) -> TurnComplete | None:
        ended = judged(self, stall)
        if stall is not None and ended is None and self._context.get(STALLED_ROUNDS) > 1:
            self._context.add_message(Message.user(WARNING.format(stall=stall.text)))
        return ended

    judged = Stalls._judged
    return [(Stalls, "_judged", patched)]


def _grace(rounds: int) -> Patches:
    def patched(self: Stalls, *given: Any) -> None:
        init(self, *given)
        self._grace = rounds

    init = Stalls.__init__
    return [(Stalls, "__init__", patched)]


def _told_is_forgotten() -> Patches:
    def patched(self: Stalls, stall: Stall | None) -> TurnComplete | None:
        if not hasattr(self, "begun"):
            self.begun = True  # type: ignore[attr-defined]
            self._context.set(STALLED_ROUNDS, 0)
        return judged(self, stall)

    judged = Stalls._judged
    return [(Stalls, "_judged", patched)]


def _begins_anew() -> Patches:
    return [(run_progress, "_beginning", lambda log, *_: len(log))]


def _always_watched() -> Patches:
    def patched(context: Any, *given: Any) -> Stalls:
        rules = context.spec.config.stall or StallConfig(threshold=2)
        progress = run_progress.RunProgress(context.spec.run_id, rules, (), context.log, None)
        return Stalls(context, given[0], progress, given[2], rules, given[3])

    return [(Stalls, "of", staticmethod(patched))]


def _decided_twice() -> Patches:
    async def patched(self: StopDecision, signal: Any, context: Any) -> Any:
        outcome = await handle(self, signal, context)
        if isinstance(signal, TurnComplete) and signal.ending == "stalled":
            context.emit(StopDecided(turn=signal_turn(context), decision="stop", reason="again"))
        return outcome

    def signal_turn(context: Any) -> int:
        turn: int = context.get(StopDecision.reads[0])
        return turn

    handle = StopDecision.handle
    return [(StopDecision, "handle", patched)]


def _no_hook_lifts() -> Patches:
    async def patched(self: Gates, stall: Stall | None) -> Stall | None:
        return await after_round(self, stall) or stall

    after_round = Gates._after_round
    return [(Gates, "_after_round", patched)]


def _no_hook_adds() -> Patches:
    async def patched(self: Gates, stall: Stall | None) -> Stall | None:
        judged = await after_round(self, stall)
        return judged if stall is not None else None

    after_round = Gates._after_round
    return [(Gates, "_after_round", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("a model is told after each round", _told_each_time, frozenset({TOLD_ONCE})),
    PlantedBug("who was told may go on for ever", lambda: _grace(99), frozenset({ENDED})),
    PlantedBug("who was told has one round", lambda: _grace(1), frozenset({NOT_BEFORE})),
    PlantedBug(
        "the next turn does not know that the model was told",
        _told_is_forgotten,
        frozenset({TOLD_ONCE}),
    ),
    PlantedBug(
        "whoever takes a run over has not seen its rounds", _begins_anew, frozenset({ENDED})
    ),
    PlantedBug("runs that are not to be watched are", _always_watched, frozenset({TOLD_ONCE})),
    PlantedBug(
        "a round that a hook calls novel is a circle", _no_hook_lifts, frozenset({AS_HOOKS_SAY})
    ),
    PlantedBug("no hook knows of a circle", _no_hook_adds, frozenset({AS_HOOKS_SAY})),
    PlantedBug("a turn is decided about twice", _decided_twice, frozenset({ONE_DECISION})),
)
