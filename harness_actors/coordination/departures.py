"""Runs that leave service, or go on, when those have that they have begun."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness_actors.coordination.active import ActiveRun, Effects, Held
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.state import StateDelta


@dataclass(eq=False)
class Departures:
    """Has no run of a tree leave service before those below it.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what becomes of them.
        dispatch: Tells their hosts.
        below: By run: the children of it that are in service.
        queued: By run: those of its children that have no place yet.
        descendants: All runs in service below one.
        asks_below: Whether a child of a run was put aside because it, or one below it, has asked
            its user.
    """

    _runs: Mapping[str, ActiveRun]
    _changes: RunChanges
    _dispatch: Dispatch
    _below: Mapping[str, Collection[str]]
    _queued: Mapping[str, Collection[str]]
    _descendants: Callable[[ActiveRun], Iterator[ActiveRun]]
    _asks_below: Callable[[ActiveRun], bool]
    leave: Callable[[ActiveRun, Held, Effects], None] = field(init=False)
    """Lets a run leave service by its answer."""
    wait: Callable[[ActiveRun, Effects], None] = field(init=False)
    """Lets a run leave service that waits for such as have asked their user."""

    def hold(self, run: ActiveRun, held: Held, effects: Effects) -> None:
        """A run leaves service as soon as all below it have, after the rounds that they are in.

        Args:
            run: The run.
            held: Its answer.
            effects: What is to be done.
        """
        if not self._below.get(run.spec.run_id):
            self.leave(run, held, effects)
            return
        self._dispatch.withhold(run)
        run.held = held
        for one in list(self._descendants(run)):
            if one.spec.run_id in self._runs:
                self.stop(one, effects)

    def has_nothing_to_finish(self, run: ActiveRun) -> bool:
        """Whether no round of a run, nor any run below it, is to end before it leaves service."""
        return self._has_no_round(run) and not self._below.get(run.spec.run_id)

    def stop(self, run: ActiveRun, effects: Effects) -> None:
        """A run is to leave service after the rounds that it and those below it are in.

        That is not written down here: should the coordinator die, it goes on with those above it.

        Args:
            run: The run.
            effects: What is to be done.
        """
        if self.has_nothing_to_finish(run):
            self._changes.put_aside(run, StateDelta(), effects)
            return
        run.parking = True
        if self._has_no_round(run):
            self._dispatch.wait_no_more(run)
            self.hold(run, Held(delta=StateDelta()), effects)
            return
        self._dispatch.stop_at_round(run, effects)
        self.rest(run, effects)

    def _has_no_round(self, run: ActiveRun) -> bool:
        """Whether it is queued, or waits for the quarantine host."""
        return run.slot is None and not run.waits_for_children and run.held is None

    def wake(self, run: ActiveRun, effects: Effects) -> None:
        """All that a run has waited for have ended: it goes on, if it has a place."""
        if run.closing is not None:
            self._changes.end(run, StateDelta(), run.closing, effects)
        elif run.parking:
            self.hold(run, Held(delta=StateDelta()), effects)
        else:
            self.go_on(run, effects)

    def go_on(self, run: ActiveRun, effects: Effects) -> None:
        """A run that nothing holds is delivered, if it has a place; else it is when it has one."""
        link = run.spec.parent
        if link is None or run.spec.run_id not in self._queued.get(link.run_id, ()):
            self._dispatch.deliver(run, effects)

    def rest(self, run: ActiveRun, effects: Effects) -> None:
        """A run that is to leave service does, when nobody below it is served any more; as does one
        that waits for those below it, if these wait for their user."""
        if self._below.get(run.spec.run_id):
            return
        if run.held is not None:
            held, run.held = run.held, None
            self.leave(run, held, effects)
        elif not run.waits_for_children:
            return
        elif run.parking:
            self._changes.put_aside(run, StateDelta(), effects)
        elif self._asks_below(run):
            if run.closing is not None:
                self._changes.end(run, StateDelta(), run.closing, effects)
            else:
                self.wait(run, effects)

    def rest_again(self, tree: Sequence[ActiveRun], effects: Effects) -> None:
        """All of a tree were taken up, each after its parent: those leave service again below whom
        nobody goes on."""
        for run in reversed(tree):
            if self._changes.serves(run):
                self.rest(run, effects)
