"""Runs of the journal that are served again: their process died, or a command takes them up."""

from dataclasses import dataclass

from harness_actors.coordination.active import ActiveRun, Background, Effects, closed_elsewhere
from harness_actors.coordination.children import Children
from harness_actors.coordination.closing import Closing
from harness_actors.coordination.graph import ENTRY
from harness_actors.coordination.losses import retrace
from harness_actors.coordination.run_changes import RunChanges, entry
from harness_actors.coordination.waiting import Waits
from harness_actors.ports import Clock
from harness_actors.records import Hop, RunAdded, StoredRun
from harness_actors.signals import RepairTrigger
from harness_actors.state import AGENT_TURN, PARKING, StateDelta, is_waiting, unanswered


@dataclass(eq=False)
class TakingUp:
    """Lets runs go on from where the journal has them.

    Args:
        command: Whose runs these are from then on.
        changes: Writes down what becomes of them.
        waits: Knows those that wait for their users.
        closing: Keeps the budget with them.
        children: Brings them to their hosts, or has them wait for others.
        clock: Tells the time.
    """

    _command: str
    _changes: RunChanges
    _waits: Waits
    _closing: Closing
    _children: Children
    _clock: Clock

    def take_up(self, stored: StoredRun, effects: Effects, *, asked: bool) -> None:
        """Serve a run that is not over and that nobody serves; see `Coordinator.adopt`.

        Raises:
            ConversationBusyError: Another run of its conversation is not over.
        """
        run = taken_from(stored)
        ours = stored.command == self._command
        if ours and not asked and run.state.values.get(PARKING.name):
            self._changes.put_aside(run, StateDelta(), effects)
            return
        waits = is_waiting(run.state.values)
        if waits and run.spec.parent is None:
            self._waits.expire(run, effects)
        elif waits:
            self._waits.take_from_above(run, effects)
        if waits and unanswered(run.state.values):
            if run.spec.parent is None:
                self._waits.ask_again(run, effects)
            else:
                self._children.put_aside(run, effects, leaves=False)
            return
        self._changes.begin(run)
        if stored.summaries:
            run.background = Background(summaries=dict(stored.summaries))
        if waits:
            self._waits.end(run, effects)
        if not ours:
            now = self._clock.now()
            effects.entries.append(
                RunAdded(spec=stored.spec, command=self._command, at=now, again=True)
            )
        if run.state.values.get(PARKING.name):
            self._changes.change(run, entry(PARKING, False), effects)
        if closed := closed_elsewhere(run.state):
            self._changes.change(run, closed, effects)
        self._closing.note(run, effects, restored=ours)
        retrace(run)
        self._children.take_up(run, effects)


def taken_from(stored: StoredRun) -> ActiveRun:
    """A run of the journal, as it stands there."""
    hop = stored.hop or Hop(to=ENTRY, signal=RepairTrigger())
    return ActiveRun(stored.spec, stored.state, hop, stored.added_at, stored.losses)


def stands_between_turns(stored: StoredRun) -> bool:
    """Whether a run goes on without repair where it is taken up, and is not new."""
    return stored.end is None and stored.hop is not None and stored.hop.to != AGENT_TURN
