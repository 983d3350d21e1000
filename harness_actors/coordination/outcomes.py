"""What follows from what executors answer: where a run goes, waits, or ends."""

from dataclasses import dataclass

from harness_actors.coordination.active import ActiveRun, Effects, Held
from harness_actors.coordination.background import BackgroundCompaction
from harness_actors.coordination.ceilings import Ceilings
from harness_actors.coordination.children import Children
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.graph import ENTRY, successor
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.coordination.waiting import Waits
from harness_actors.records import Hop
from harness_actors.signals import Outcome, Parked, RepairTrigger, RunEnd, Waiting, Yielded
from harness_actors.state import AGENT_TURN, StateDelta


@dataclass(eq=False)
class Outcomes:
    """Leads runs on from the answers of their executors.

    Args:
        changes: Writes down what becomes of them.
        dispatch: Brings them to their hosts.
        waits: Puts those aside that have asked their users.
        children: Has those wait that delegate.
        background: Knows what is being prepared for their windows.
        ceilings: Says where one has come to an end.
    """

    _changes: RunChanges
    _dispatch: Dispatch
    _waits: Waits
    _children: Children
    _background: BackgroundCompaction
    _ceilings: Ceilings

    def follow(self, run: ActiveRun, delta: StateDelta, outcome: Outcome, effects: Effects) -> None:
        """A run was answered, and has left its host.

        Args:
            run: The run.
            delta: Its change that came with the answer.
            outcome: The answer.
            effects: What is to be done.
        """
        match outcome:
            case RunEnd():
                self._changes.end(run, delta, outcome, effects)
            case Parked() | Waiting() if run.closing is not None:
                self._changes.end(run, delta, run.closing, effects)
            case Parked() if run.unparked_in == run.hop_number and not run.parking:
                # It had parked before it heard that it is to go on.
                self._changes.change(run, delta, effects)
                self._dispatch.deliver(run, effects)
            case Parked():
                self._park(run, delta, effects)
            case Waiting() if not outcome.on_user and run.parking:
                # None of them has begun: it begins them when it goes on.
                self._park(run, delta, effects)
            case Waiting() if not outcome.on_user:
                self._children.begin(run, delta, outcome, effects)
            case Waiting():
                self._children.departures.hold(run, Held(delta=delta, asks=True), effects)
            case Yielded():
                # No turn is over: it goes on when there is room.
                run.hops += 1
                run.hop = Hop(to=ENTRY, signal=RepairTrigger())
                holds = run.offer is None and self._background.hold(run)
                self._go_on(run, delta, effects, waits=holds)
            case signal:
                delta = self._ceilings.count(run, delta)
                run.hop = Hop(to=successor(run.spec.edges, run.hop.to), signal=signal)
                self._go_on(run, delta, effects)

    def _go_on(
        self, run: ActiveRun, delta: StateDelta, effects: Effects, *, waits: bool = False
    ) -> None:
        # Only where it would ask the model again: what is done is to end as done.
        if run.closing is not None and run.hop.to == AGENT_TURN:
            self._changes.end(run, delta, run.closing, effects)
        elif run.parking:
            self._park(run, delta, effects, moved=True)
        else:
            self._changes.change(run, delta, effects, moved=True)
            if delta.plan is not None:
                self._children.beside.remind(run, effects)
            if (end := self._ceilings.reached(run)) is not None:
                self._changes.end(run, StateDelta(), end, effects)
            elif waits or (self._background.is_awaited(run) and self._background.hold(run)):
                self._dispatch.withhold(run)
            else:
                self._dispatch.deliver(run, effects)

    def _park(
        self, run: ActiveRun, delta: StateDelta, effects: Effects, *, moved: bool = False
    ) -> None:
        """A run is put aside when those have been that it has begun beside it."""
        self._children.departures.hold(run, Held(delta=delta, moved=moved), effects)

    def leave(self, run: ActiveRun, held: Held, effects: Effects) -> None:
        """All below a run have left service, and it does."""
        if run.closing is not None:
            self._changes.end(run, held.delta, run.closing, effects)
        elif held.asks:
            self._waits.begin(run, held.delta, effects)
        else:
            self._changes.put_aside(run, held.delta, effects, moved=held.moved)
