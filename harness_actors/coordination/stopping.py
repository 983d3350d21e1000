"""Runs that are to stop: because their user says so, or because their time is up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness_actors.coordination.active import ActiveRun, Effects, Held
from harness_actors.coordination.children import Children
from harness_actors.coordination.deadlines import Deadlines
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import CANCELLED, limit_reached
from harness_actors.coordination.protocol import Cut, GoOn
from harness_actors.coordination.run_changes import RunChanges, entry
from harness_actors.ports import Clock
from harness_actors.records import StoredRun
from harness_actors.results import Usage
from harness_actors.state import PARKING, USAGE, StateDelta, Write


@dataclass(eq=False)
class Stopping:
    """Parks, cancels and ends runs, whether or not somebody serves them.

    Args:
        command: The command whose runs these are.
        changes: Writes down what becomes of them.
        dispatch: Tells their hosts.
        deadlines: Knows whose time is up.
        clock: Tells the time.
        children: Keeps trees together.
    """

    _command: str
    _changes: RunChanges
    _dispatch: Dispatch
    _deadlines: Deadlines
    _clock: Clock
    _children: Children

    def stop(self, run: ActiveRun, mode: str, effects: Effects) -> None:
        """A user asked a run in service to stop; `mode` is a `StopMode`.

        A tree is put aside as one, whichever of its runs was named.
        """
        if mode == "cancel":
            self._cut(run, effects)
            self._changes.end(run, StateDelta(), CANCELLED, effects)
            return
        tree = self._children.tree_of(run)
        if mode == "park":
            for one in tree:
                if self._changes.serves(one):
                    self._ask_to_park(one, effects)
            return
        for one in tree:
            # It was asked to before, perhaps: it is put aside below, and not once more by its last
            # child that is.
            one.parking = False
        for one in reversed(tree):
            if not self._changes.serves(one):
                continue  # it was about to leave, and did with the last below it
            self._cut(one, effects)
            held, one.held = one.held or Held(delta=StateDelta()), None
            self._changes.put_aside(one, held.delta, effects, moved=held.moved)

    def stop_idle(
        self,
        stored: StoredRun,
        mode: str,
        as_active: Callable[[StoredRun], ActiveRun],
        *,
        shared: bool,
        tree: Sequence[StoredRun],
    ) -> Effects:
        """See `Coordinator.stop_idle`; of a run that is not in service, nor over."""
        effects = Effects()
        if mode == "cancel":
            self._end_idle(as_active(stored), [as_active(one) for one in tree], effects, shared)
        elif stored.command == self._command:
            for one in (*reversed(tree), stored):
                self._changes.put_aside(as_active(one), StateDelta(), effects)
        return effects

    def _end_idle(
        self, run: ActiveRun, tree: Sequence[ActiveRun], effects: Effects, shared: bool
    ) -> None:
        if tree:
            self._children.end_idle(run, CANCELLED, tree, effects, shared)
        else:
            self._changes.end(run, StateDelta(), CANCELLED, effects, shared=shared)

    def go_on(self, run: ActiveRun, effects: Effects) -> None:
        """A run that was to park does not, after all."""
        for one in self._children.tree_of(run):
            self._go_on(one, effects)

    def _go_on(self, run: ActiveRun, effects: Effects) -> None:
        if run.parking:
            run.parking, run.unparked_in = False, run.hop_number
            self._changes.change(run, entry(PARKING, False), effects)
            if run.held is not None and not run.held.asks:
                held, run.held = run.held, None
                self._changes.change(run, held.delta, effects, moved=held.moved)
                self._children.departures.go_on(run, effects)
            elif run.closing is None and run.makes_rounds:
                self._dispatch.post(run, GoOn(), effects)

    def overdue(self) -> Effects:
        """See `Coordinator.overdue`."""
        effects = Effects()
        now = self._clock.now()
        for run, kind in self._deadlines.passed(now):
            self._cut(run, effects)
            self._changes.end(run, _uncounted(run, now), limit_reached(kind, run), effects)
        return effects

    def _ask_to_park(self, run: ActiveRun, effects: Effects) -> None:
        departures = self._children.departures
        if not run.parking and not departures.has_nothing_to_finish(run):
            self._changes.change(run, entry(PARKING, True), effects)
        departures.stop(run, effects)

    def _cut(self, run: ActiveRun, effects: Effects) -> None:
        self._dispatch.post(run, Cut(), effects)
        self._dispatch.leave(run, effects)


def _uncounted(run: ActiveRun, now: float) -> StateDelta:
    """What an executor of the user's own has worked and will not be asked for."""
    if run.slot is None or not run.slot.code or run.busy_since is None:
        return StateDelta()
    worked = USAGE.encode(Usage(working_s=max(0.0, now - run.busy_since)))
    return StateDelta((Write(USAGE.name, "increment", worked),))
