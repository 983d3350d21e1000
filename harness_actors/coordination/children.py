"""Runs that others have begun: started, waited for, and ended with them."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.asked_below import taken_back, to_go_on
from harness_actors.coordination.beside import Beside, handle_of, started
from harness_actors.coordination.child_specs import before_calls, child_spec, started_event
from harness_actors.coordination.closing import Closing
from harness_actors.coordination.departures import Departures
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import NOT_WANTED, ORPHANED
from harness_actors.coordination.graph import ENTRY
from harness_actors.coordination.kinship import given, is_child_of, stands_below
from harness_actors.coordination.protocol import Cut
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.coordination.tree_limits import TreeLimits
from harness_actors.errors import ConversationBusyError, WorkflowError
from harness_actors.events import ChildEnded
from harness_actors.ports import Clock
from harness_actors.records import Hop, RunAdded, RunSpec
from harness_actors.results import HarnessResult
from harness_actors.signals import ChildRequest, RepairTrigger, RunEnd, Waiting
from harness_actors.state import (
    AWAITED,
    BESIDE,
    CHILD_WAITS,
    CHILDREN,
    CHILDREN_USAGE,
    SharedState,
    StateDelta,
    Write,
    is_waiting,
)
from harness_actors.subagents.reports import child_result


@dataclass(eq=False)
class Children:
    """Knows which runs have begun which others, and keeps each tree together.

    A child is a run like any other, with a conversation of its own. Its end, and that its parent
    is told of it, are one commit: each result is there exactly once, whoever dies.

    Args:
        command: Whose runs these are.
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what becomes of them.
        closing: Keeps the budget with them.
        dispatch: Brings them to their hosts.
        clock: Dates what is committed.
    """

    _command: str
    _runs: Mapping[str, ActiveRun]
    _changes: RunChanges
    _closing: Closing
    _dispatch: Dispatch
    _clock: Clock
    _below: dict[str, dict[str, None]] = field(default_factory=dict, init=False)
    """By run: the children of it that are in service, in the order in which they began."""
    _aside: dict[str, set[str]] = field(default_factory=dict, init=False)
    """By run: those of them that were put aside, while the one at the top is in service."""
    _queued: dict[str, OrderedDict[str, None]] = field(default_factory=dict, init=False)
    """By run: those of them that have no place yet, because enough others are served."""
    _ending: set[str] = field(default_factory=set, init=False)
    """Runs that are about to end, which wait for nobody any more."""
    _idle: dict[str, ActiveRun] = field(default_factory=dict, init=False)
    """Runs of a tree that nobody serves, while something is done about one of them."""
    _resting: dict[str, dict[str, ActiveRun]] = field(default_factory=dict, init=False)
    """By the run at the top, while that is in service: those of its tree that were put aside."""
    _background: dict[str, set[str]] = field(default_factory=dict, init=False)
    """By run: those of its children, in service or aside, beside which it goes on."""
    _asking: set[str] = field(default_factory=set, init=False)
    """Runs whose requests are being answered: none of them goes on before all are."""
    answers_requests: bool = field(default=True, init=False)
    """False where the answers are on record."""

    def __post_init__(self) -> None:
        runs, changes, dispatch = self._runs, self._changes, self._dispatch
        self.limits = TreeLimits(runs, dispatch)
        self.departures = Departures(
            runs, changes, dispatch, self._below, self._queued, self._descendants, self._asks_below
        )
        self.beside = Beside(runs, changes, dispatch, self._clock, self)

    # ---- what runs do -------------------------------------------------------------------

    def begin(self, run: ActiveRun, delta: StateDelta, waiting: Waiting, effects: Effects) -> None:
        """A run has begun others, or asks something of such, and waits for that at no host.

        Args:
            run: The run.
            delta: Its last change before that.
            waiting: What it is to have, and what it asks.
            effects: What is to be done.

        Raises:
            WorkflowError: Another run has the name that one of them would get.
        """
        starts, requests = waiting.children, waiting.requests
        before: int = run.state.values.get(CHILDREN.name, 0)
        forks = any(start.forked for start in starts)
        said = before_calls((*run.state.log, *delta.messages)) if forks else ()
        specs = [child_spec(run.spec, one, before + at, said) for at, one in enumerate(starts, 1)]
        beside = [spec for spec in specs if spec.parent is not None and spec.parent.background]
        writes = [
            *(Write(BESIDE.name, "put", [handle_of(spec), ""]) for spec in beside),
            Write(AWAITED.name, "set", len(specs) + len(requests)),
        ]
        events = delta.events
        if specs:
            writes.insert(0, Write(CHILDREN.name, "increment", len(specs)))
            events = (*events, started_event(run.state.values, starts, specs))
        last = replace(delta, writes=(*delta.writes, *writes), events=events)
        # It goes on where it is: meanwhile nobody touches its log, and nothing is to be repaired.
        self._changes.change(run, last, effects, moved=True)
        self._dispatch.withhold(run)
        now = self._clock.now()
        for spec in specs:
            child = ActiveRun(spec, SharedState(), Hop(to=ENTRY, signal=RepairTrigger()), now)
            try:
                self._changes.begin(child)
            except ConversationBusyError as error:
                raise WorkflowError(run.hop.to, f"has no child {spec.run_id!r}: {error}") from error
            effects.entries.append(RunAdded(spec=spec, command=self._command, at=now))
            self._closing.note(child, effects)
            self._join(child)
            self._queued.setdefault(run.spec.run_id, OrderedDict())[spec.run_id] = None
        if beside or requests:
            self._asking.add(run.spec.run_id)
            if self.answers_requests:
                self._answer(run, beside, requests, effects)
        self._fill(run, effects)
        self.departures.rest(run, effects)

    def _answer(
        self,
        run: ActiveRun,
        beside: Sequence[RunSpec],
        requests: Sequence[ChildRequest],
        effects: Effects,
    ) -> None:
        """Say at once what can be said at once: who was begun beside a run, and what it asks."""
        answers, waits = self.beside.answers(run, requests, effects)
        writes = [given(one) for one in (*map(started, beside), *answers)]
        if waits:
            writes.append(Write(CHILD_WAITS.name, "set", waits))
        self.answered(run, writes, effects)
        self.beside.watch(run)

    def answered(self, run: ActiveRun, writes: Sequence[Write], effects: Effects) -> None:
        """What a run has asked is answered; it goes on where it waits for nothing more."""
        self._asking.discard(run.spec.run_id)
        is_last = not self._unfinished(run, writes)
        last = (Write(AWAITED.name, "set", 0),) if is_last else ()
        self._changes.change(run, StateDelta((*writes, *last)), effects)
        if is_last:
            self.departures.wake(run, effects)

    def take_up(self, run: ActiveRun, effects: Effects) -> None:
        """A run of the journal is served again: it goes on, or waits for those below it."""
        if run.spec.parent is not None:
            self._join(run)
            self.limits.close_if_spent(run, [run], effects)
        if run.waits_for_children:
            self._dispatch.withhold(run)
            self.beside.watch(run)
        if (link := run.spec.parent) is not None:
            self._queued.setdefault(link.run_id, OrderedDict())[run.spec.run_id] = None
            self._fill(self._runs[link.run_id], effects)
        elif not run.waits_for_children:
            self._dispatch.deliver(run, effects)

    def _join(self, child: ActiveRun) -> None:
        """A child is in service."""
        assert child.spec.parent is not None, "only such are told of here"
        parent = self._runs[child.spec.parent.run_id]
        self._below.setdefault(parent.spec.run_id, {})[child.spec.run_id] = None
        if child.spec.parent.background:
            self._background.setdefault(parent.spec.run_id, set()).add(child.spec.run_id)
        self._aside.get(parent.spec.run_id, set()).discard(child.spec.run_id)
        self._resting.get(child.spec.root, {}).pop(child.spec.run_id, None)
        self.limits.joined(child)

    def _fill(self, parent: ActiveRun, effects: Effects) -> None:
        """Serve those that are queued, as far as there may be more."""
        run_id, settings = parent.spec.run_id, parent.spec.config.sub_agents
        queue, most = self._queued.get(run_id), 1 if settings is None else settings.max_parallel
        while queue and len(self._below[run_id]) - len(queue) < most:
            child = self._runs[queue.popitem(last=False)[0]]
            # One that came back for those below it has a place, and goes on when they have ended;
            # one that is held has one when it goes on after all.
            if not child.waits_for_children and child.held is None:
                self._dispatch.deliver(child, effects)
        if not queue:
            self._queued.pop(run_id, None)

    # ---- what becomes of runs -----------------------------------------------------------

    def changed(self, run: ActiveRun, delta: StateDelta) -> None:
        """See `Kin`."""
        self.limits.charge(run, delta)

    def before_end(self, run: ActiveRun, effects: Effects) -> None:
        """See `Kin`."""
        if run.held is not None:
            held, run.held = run.held, None
            self._changes.change(run, held.delta, effects, moved=held.moved)
        run_id, resting = run.spec.run_id, self._resting.get(run.spec.root, {})
        aside = [one for one in resting.values() if is_child_of(one, run_id)]
        below = [*map(self._runs.__getitem__, self._below.get(run_id, ())), *aside]
        if not below:
            return
        self._ending.add(run_id)
        for child in below:
            self.cancel(child, effects, ORPHANED)
        self._ending.discard(run_id)

    def over(self, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        """See `Kin`."""
        run_id, link = run.spec.run_id, run.spec.parent
        self._leave(run)
        self._forget(run_id)
        self._idle.pop(run_id, None)
        if link is None:
            self._resting.pop(run_id, None)
            return
        resting = self._resting.get(link.root, {})
        parent = (
            self._runs.get(link.run_id) or self._idle.get(link.run_id) or resting.get(link.run_id)
        )
        if parent is None:
            return
        top = self._runs.get(link.root) or self._idle.get(link.root)
        if top is not None and (done := taken_back(run.spec, top.state.values)):
            self._changes.change(top, StateDelta(done), effects)
        used = Write(CHILDREN_USAGE.name, "increment", asdict(result.usage_tree))
        came_to = child_result(link, result, run.state.values)
        if link.run_id in self._ending:
            # Its last words say what came of its calls.
            said = () if link.background else (given(came_to),)
            self._changes.change(parent, StateDelta((used, *said)), effects)
            return
        told = ChildEnded(
            run_id=run_id,
            agent=link.agent.rpartition("/")[2],
            call_id=link.call_id,
            status=came_to.status,
        )
        if link.background:
            writes = [used, *self.beside.ended(parent, run.spec, came_to)]
        else:
            writes = [used, given(came_to)]
        is_last = parent.waits_for_children and not self._unfinished(parent, writes)
        if is_last:
            writes.append(Write(AWAITED.name, "set", 0))
        self._changes.change(parent, StateDelta(tuple(writes), events=(told,)), effects)
        if link.run_id in self._idle:
            return
        self.beside.tell(parent, writes, effects)
        if is_last:
            self.departures.wake(parent, effects)
        else:
            self._fill(parent, effects)
            self.departures.rest(parent, effects)

    def cancel(self, child: ActiveRun, effects: Effects, end: RunEnd = NOT_WANTED) -> None:
        """See `Family`."""
        self._dispatch.post(child, Cut(), effects)
        self._dispatch.leave(child, effects)
        self._changes.end(child, StateDelta(), end, effects)

    def aside(self, run: ActiveRun, child_id: str) -> ActiveRun | None:
        """See `Family`."""
        is_aside = child_id in self._aside.get(run.spec.run_id, ())
        return self._resting.get(run.spec.root, {}).get(child_id) if is_aside else None

    def to_go_on(self, top: ActiveRun) -> list[str]:
        """Those below one that go on because they, or some of theirs, were answered."""
        return to_go_on(top, self._resting.get(top.spec.run_id, {}), self._runs)

    def overdue(self, effects: Effects) -> None:
        """Time passed: runs that have waited long enough for others go on."""
        self.beside.overdue(lambda run, writes: self.answered(run, writes, effects))

    def put_aside(self, run: ActiveRun, effects: Effects, *, leaves: bool = True) -> None:
        """See `Kin`; without `leaves` the one that waits for it stays in service as yet."""
        self._leave(run)
        if (link := run.spec.parent) is None:
            for one in (run.spec.run_id, *self._resting.pop(run.spec.run_id, ())):
                self._forget(one)
            return
        self.rests(run)
        if (parent := self._runs.get(link.run_id)) is not None:
            if is_waiting(run.state.values) and not parent.parking and parent.held is None:
                self._fill(parent, effects)
            if leaves:
                self.departures.rest(parent, effects)

    def rests(self, run: ActiveRun) -> None:
        """A child is put aside, or goes on when the one above it does, which was."""
        run_id, link = run.spec.run_id, run.spec.parent
        if link is not None and link.root in self._runs:
            self._resting.setdefault(link.root, {})[run_id] = run
            self._aside.setdefault(link.run_id, set()).add(run_id)
            if link.background:
                self._background.setdefault(link.run_id, set()).add(run_id)
            self.limits.joined(run)

    def _asks_below(self, run: ActiveRun) -> bool:
        """See `Departures`."""
        run_id, resting = run.spec.run_id, self._resting.get(run.spec.root, {})
        aside = (resting[one].state.values for one in self._aside.get(run_id, ()))
        return run_id not in self._asking and any(map(is_waiting, aside))

    def _leave(self, run: ActiveRun) -> None:
        """A run is in service no longer, nor is any below it."""
        run_id, link = run.spec.run_id, run.spec.parent
        self._below.pop(run_id, None)
        self._queued.pop(run_id, None)
        self.limits.left(run)
        if link is None:
            return
        self._resting.get(link.root, {}).pop(run_id, None)
        self._below.get(link.run_id, {}).pop(run_id, None)
        self._background.get(link.run_id, set()).discard(run_id)
        self._aside.get(link.run_id, set()).discard(run_id)
        if queue := self._queued.get(link.run_id):
            queue.pop(run_id, None)

    def _forget(self, run_id: str) -> None:
        """A run is over, or the one at its top is put aside: who is aside below it is no matter."""
        self._aside.pop(run_id, None)
        self._background.pop(run_id, None)

    def _unfinished(self, parent: ActiveRun, writes: Sequence[Write] = ()) -> bool:
        """Whether a run waits still for children that are not over, or for what it has asked.

        Args:
            parent: The run.
            writes: What is about to be written of it.
        """
        run_id = parent.spec.run_id
        waits = parent.state.values.get(CHILD_WAITS.name)
        for write in writes:
            waits = write.value if write.key == CHILD_WAITS.name else waits
        if waits or run_id in self._asking:
            return True
        if run_id in self._idle:
            links = (one.spec.parent for one in self._idle.values())
            return any(
                link is not None and link.run_id == run_id and not link.background for link in links
            )
        below, aside = self._below.get(run_id, ()), self._aside.get(run_id, ())
        return len(below) + len(aside) > len(self._background.get(run_id, ()))

    # ---- trees --------------------------------------------------------------------------

    def tree_of(self, run: ActiveRun) -> list[ActiveRun]:
        """The runs of a tree that are in service, each after its parent."""
        top = self._runs.get(run.spec.root)
        return [run] if top is None else [top, *self._descendants(top)]

    def _descendants(self, run: ActiveRun) -> Iterator[ActiveRun]:
        for child_id in self._below.get(run.spec.run_id, ()):
            child = self._runs[child_id]
            yield child
            yield from self._descendants(child)

    def end_idle(
        self,
        run: ActiveRun,
        end: RunEnd,
        tree: Sequence[ActiveRun],
        effects: Effects,
        shared: bool = False,
    ) -> None:
        """End a run that nobody serves, and all below it.

        Args:
            run: The run.
            end: How it ends.
            tree: The other runs of its tree that are not over, each after its parent.
            effects: What is to be done.
            shared: See `RunChanges.end`.
        """
        idle = [one for one in tree if one.spec.run_id not in self._runs]
        self._idle = {one.spec.run_id: one for one in (*idle, run)}
        below = [one for one in idle if stands_below(one, run, self._idle)]
        self._ending = {one.spec.run_id for one in (run, *below)}
        if run.spec.root in self._runs:
            # From here on they are as they were read.
            self._resting[run.spec.root] = {one.spec.run_id: one for one in idle}
        for one in reversed(below):
            self._changes.end(one, StateDelta(), ORPHANED, effects)
        self._changes.end(run, StateDelta(), end, effects, shared=shared)
        self._ending, self._idle = set(), {}
