"""Faults in how runs are told of those beside them, ask them, and leave service with them."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.coordination import beside
from harness_actors.coordination.active import ActiveRun, Effects, Held
from harness_actors.coordination.beside import Beside
from harness_actors.coordination.children import Children
from harness_actors.coordination.departures import Departures
from harness_actors.coordination.stopping import Stopping
from harness_actors.executors.context import DeltaContext
from harness_actors.signals import ChildRequest, Waiting
from harness_actors.state import MAIL, Letter, StateDelta, Write
from tests.simulation.kin_at_work import APART, NO_DEADLOCK, NOWHERE
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import OWN_CALLS, STOPPED
from tests.simulation.sent_out import STEERED, TOLD_ONCE, WAITED


def _never_taken_out() -> Patches:
    def patched(self: DeltaContext, key: Any, count: int = 1) -> None:
        if key is not MAIL:
            drop(self, key, count)

    drop = DeltaContext.drop
    return [(DeltaContext, "drop", patched)]


def _told_twice() -> Patches:
    def patched(self: DeltaContext, letters: Sequence[Letter]) -> None:
        take(self, (*letters, *letters))

    take = DeltaContext.take_mail
    return [(DeltaContext, "take_mail", patched)]


def _never_told() -> Patches:
    def patched(self: Beside, *of: Any) -> list[Write]:
        return [write for write in ended(self, *of) if write.key != MAIL.name]

    ended = Beside.ended
    return [(Beside, "ended", patched)]


def _any_for_all() -> Patches:
    def patched(wait: Mapping[str, Any], known: Mapping[str, str]) -> bool:
        return any(bool(known.get(handle)) for handle in wait["children"])

    return [(beside, "_is_over", patched)]


def _waits_for_ever() -> Patches:
    return [(Beside, "watch", lambda self, run: None)]


def _never_over() -> Patches:
    return [(beside, "_is_over", lambda wait, known: False)]


def _leaves_them() -> Patches:
    def patched(self: Departures, run: ActiveRun, held: Held, effects: Effects) -> None:
        self.leave(run, held, effects)

    return [(Departures, "hold", patched)]


def _keeps_its_answer() -> Patches:
    def patched(self: Departures, run: ActiveRun, effects: Effects) -> None:
        held = run.held
        if held is not None and not self._below.get(run.spec.run_id):
            run.held = Held(delta=StateDelta(), asks=held.asks)
        rest(self, run, effects)

    rest = Departures.rest
    return [(Departures, "rest", patched)]


def _closes_calls_of_others() -> Patches:
    def patched(self: Stopping, run: Any, tree: Any, effects: Any, shared: bool) -> None:
        end_idle(self, run, tree, effects, shared=False)

    end_idle = Stopping._end_idle
    return [(Stopping, "_end_idle", patched)]


def _goes_on_unanswered() -> Patches:
    def patched(
        self: Children, run: ActiveRun, delta: StateDelta, waiting: Waiting, effects: Effects
    ) -> None:
        begin(self, run, delta, waiting, effects)
        if waiting.requests and run.slot is None and run.waits_for_children:
            self.departures.wake(run, effects)

    begin = Children.begin
    return [(Children, "begin", patched)]


def _tells_the_first() -> Patches:
    """What is sent to one reaches the first that was sent out."""

    def patched(self: Beside, run: ActiveRun, request: ChildRequest, effects: Effects) -> Any:
        child = self._child(run, "scout-1")
        if child is not None:
            self.post(child, Letter(sender="", status=None, text=request.text), effects)
        return send(self, run, request, effects)

    send = Beside._send
    return [(Beside, "_send", patched)]


BUGS = (
    PlantedBug("letters are read again", _never_taken_out, frozenset({TOLD_ONCE, STEERED})),
    PlantedBug("a letter is taken for two", _told_twice, frozenset({TOLD_ONCE, STEERED})),
    PlantedBug("nobody is told of those beside", _never_told, frozenset({TOLD_ONCE})),
    PlantedBug("who waits for all goes on with the first", _any_for_all, frozenset({WAITED})),
    PlantedBug("the time of a wait is never over", _waits_for_ever, frozenset({WAITED})),
    PlantedBug("a wait does not see that all have ended", _never_over, frozenset({NO_DEADLOCK})),
    PlantedBug("a run leaves those beside it behind", _leaves_them, frozenset({APART})),
    PlantedBug(
        "who leaves later forgets what it had done",
        _keeps_its_answer,
        frozenset({STOPPED}),
    ),
    PlantedBug(
        "a tree that ends closes calls of others", _closes_calls_of_others, frozenset({OWN_CALLS})
    ),
    PlantedBug("who waits goes on unanswered", _goes_on_unanswered, frozenset({NOWHERE})),
    PlantedBug("what is sent to one comes twice", _tells_the_first, frozenset({STEERED})),
)
