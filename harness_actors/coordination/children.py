"""Runs that others have begun: started, waited for, and ended with them."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.closing import Closing
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import ORPHANED
from harness_actors.coordination.graph import DEFAULT_EDGES, ENTRY
from harness_actors.coordination.protocol import Cut
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.coordination.tree_limits import TreeLimits
from harness_actors.errors import ConversationBusyError, WorkflowError
from harness_actors.events import ChildEnded, ChildrenStarted
from harness_actors.messages import Message
from harness_actors.ports import Clock
from harness_actors.records import CHILD_MARK, Hop, ParentLink, RunAdded, RunSpec
from harness_actors.results import HarnessResult
from harness_actors.signals import ChildStart, RepairTrigger, RunEnd
from harness_actors.state import (
    AWAITED,
    CHILD_RESULTS,
    CHILDREN,
    CHILDREN_USAGE,
    SharedState,
    StateDelta,
    Write,
    turns_of,
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
    """By run in service: those of them that were put aside."""
    _queued: dict[str, deque[str]] = field(default_factory=dict, init=False)
    """By run: those of them that nobody serves yet, because enough others are served."""
    _ending: set[str] = field(default_factory=set, init=False)
    """Runs that are about to end, which wait for nobody any more."""
    _idle: dict[str, ActiveRun] = field(default_factory=dict, init=False)
    """Runs of a tree that nobody serves, while something is done about one of them."""
    _resting: dict[str, dict[str, ActiveRun]] = field(default_factory=dict, init=False)
    """By the run at the top, while that is in service: those of its tree that were put aside."""

    def __post_init__(self) -> None:
        self.limits = TreeLimits(self._runs, self._dispatch)

    # ---- what runs do -------------------------------------------------------------------

    def begin(
        self, run: ActiveRun, delta: StateDelta, starts: Sequence[ChildStart], effects: Effects
    ) -> None:
        """A run has begun others, and waits for them at no host.

        Args:
            run: The run.
            delta: Its last change before that.
            starts: Those that it is to have.
            effects: What is to be done.

        Raises:
            WorkflowError: Another run has the name that one of them would get.
        """
        before: int = run.state.values.get(CHILDREN.name, 0)
        specs = [_spec_of(run.spec, start, before + at) for at, start in enumerate(starts, 1)]
        told = tuple(
            {"run_id": spec.run_id, "agent": start.agent, "call_id": start.call_id}
            for spec, start in zip(specs, starts, strict=True)
        )
        started = ChildrenStarted(turn=turns_of(run.state.values), children=told)
        writes = (
            Write(CHILDREN.name, "increment", len(specs)),
            Write(AWAITED.name, "set", len(specs)),
        )
        last = replace(delta, writes=(*delta.writes, *writes), events=(*delta.events, started))
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
            self._queued.setdefault(run.spec.run_id, deque()).append(spec.run_id)
        self._fill(run, effects)

    def take_up(self, run: ActiveRun, effects: Effects) -> None:
        """A run of the journal is served again: it goes on, or waits for those below it."""
        if run.spec.parent is not None:
            self._join(run)
        if run.waits_for_children:
            self._dispatch.withhold(run)
        elif run.spec.parent is None:
            self._dispatch.deliver(run, effects)
        else:
            parent = self._runs[run.spec.parent.run_id]
            self._queued.setdefault(parent.spec.run_id, deque()).append(run.spec.run_id)
            self._fill(parent, effects)

    def _join(self, child: ActiveRun) -> None:
        """A child is in service."""
        assert child.spec.parent is not None, "only such are told of here"
        parent = self._runs[child.spec.parent.run_id]
        self._below.setdefault(parent.spec.run_id, {})[child.spec.run_id] = None
        self._aside.get(parent.spec.run_id, set()).discard(child.spec.run_id)
        self._resting.get(child.spec.root, {}).pop(child.spec.run_id, None)
        self.limits.joined(child)

    def _fill(self, parent: ActiveRun, effects: Effects) -> None:
        """Serve those that are queued, as far as there may be more."""
        run_id, settings = parent.spec.run_id, parent.spec.config.sub_agents
        queue, most = self._queued.get(run_id), 1 if settings is None else settings.max_parallel
        while queue and len(self._below[run_id]) - len(queue) < most:
            self._dispatch.deliver(self._runs[queue.popleft()], effects)
        if not queue:
            self._queued.pop(run_id, None)

    # ---- what becomes of runs -----------------------------------------------------------

    def changed(self, run: ActiveRun, delta: StateDelta) -> None:
        """See `Kin`."""
        self.limits.charge(run, delta)

    def before_end(self, run: ActiveRun, effects: Effects) -> None:
        """See `Kin`."""
        run_id, resting = run.spec.run_id, self._resting.get(run.spec.root, {})
        aside = [one for one in resting.values() if _is_child(one, run_id)]
        below = [*map(self._runs.__getitem__, self._below.get(run_id, ())), *aside]
        if not below:
            return
        self._ending.add(run_id)
        for child in below:
            self._dispatch.post(child, Cut(), effects)
            self._dispatch.leave(child, effects)
            self._changes.end(child, StateDelta(), ORPHANED, effects)
        self._ending.discard(run_id)

    def over(self, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        """See `Kin`."""
        run_id, link = run.spec.run_id, run.spec.parent
        self._leave(run)
        self._idle.pop(run_id, None)
        if link is None:
            return
        resting = self._resting.get(link.root, {})
        parent = (
            self._runs.get(link.run_id) or self._idle.get(link.run_id) or resting.get(link.run_id)
        )
        if parent is None:
            return
        used = Write(CHILDREN_USAGE.name, "increment", asdict(result.usage_tree))
        if link.run_id in self._ending:
            self._changes.change(parent, StateDelta((used,)), effects)
            return
        came_to = child_result(link, result)
        told = ChildEnded(
            run_id=run_id,
            agent=link.agent.rpartition("/")[2],
            call_id=link.call_id,
            status=came_to.status,
        )
        is_last = not self._unfinished(parent)
        writes = (
            used,
            Write(CHILD_RESULTS.name, "append", asdict(came_to)),
            *((Write(AWAITED.name, "set", 0),) if is_last else ()),
        )
        self._changes.change(parent, StateDelta(writes, events=(told,)), effects)
        if link.run_id in self._idle:
            return
        if is_last:
            self._wake(parent, effects)
        else:
            self._fill(parent, effects)
            self._rest(parent, effects)

    def put_aside(self, run: ActiveRun, effects: Effects) -> None:
        """See `Kin`."""
        self._leave(run)
        if (link := run.spec.parent) is None:
            return
        if (parent := self._runs.get(link.run_id)) is not None:
            self._aside.setdefault(link.run_id, set()).add(run.spec.run_id)
            self._resting.setdefault(link.root, {})[run.spec.run_id] = run
            self._rest(parent, effects)

    def _leave(self, run: ActiveRun) -> None:
        """A run is in service no longer, nor is any below it."""
        run_id, link = run.spec.run_id, run.spec.parent
        self._below.pop(run_id, None)
        self._aside.pop(run_id, None)
        self.limits.left(run)
        if link is None:
            self._resting.pop(run_id, None)
            return
        self._resting.get(link.root, {}).pop(run_id, None)
        self._below.get(link.run_id, {}).pop(run_id, None)
        self._aside.get(link.run_id, set()).discard(run_id)
        queue = self._queued.get(link.run_id)
        if queue is not None and run_id in queue:
            queue.remove(run_id)
            if not queue:
                del self._queued[link.run_id]

    def _unfinished(self, parent: ActiveRun) -> bool:
        """Whether a run has children still that are not over."""
        run_id = parent.spec.run_id
        if run_id in self._idle:
            links = (one.spec.parent for one in self._idle.values())
            return any(link is not None and link.run_id == run_id for link in links)
        return bool(self._below.get(run_id) or self._aside.get(run_id))

    def _wake(self, parent: ActiveRun, effects: Effects) -> None:
        """All that a run has waited for have ended: it goes on."""
        if parent.closing is not None:
            self._changes.end(parent, StateDelta(), parent.closing, effects)
        elif parent.parking:
            self._changes.put_aside(parent, StateDelta(), effects)
        else:
            self._dispatch.deliver(parent, effects)

    def _rest(self, parent: ActiveRun, effects: Effects) -> None:
        """A run that is to be put aside is, when nobody below it is served any more."""
        if parent.parking and parent.waits_for_children and not self._below.get(parent.spec.run_id):
            self._changes.put_aside(parent, StateDelta(), effects)

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

    def is_queued(self, run: ActiveRun) -> bool:
        """Whether nobody has served a child yet."""
        link = run.spec.parent
        return link is not None and run.spec.run_id in self._queued.get(link.run_id, ())

    def end_idle(
        self, run: ActiveRun, end: RunEnd, tree: Sequence[ActiveRun], effects: Effects
    ) -> None:
        """End a run that nobody serves, and all below it.

        Args:
            run: The run.
            end: How it ends.
            tree: The other runs of its tree that are not over, each after its parent.
            effects: What is to be done.
        """
        idle = [one for one in tree if one.spec.run_id not in self._runs]
        self._idle = {one.spec.run_id: one for one in (*idle, run)}
        below = [one for one in idle if self._is_below(one, run)]
        self._ending = {one.spec.run_id for one in (run, *below)}
        # From here on they are as they were read.
        self._resting.pop(run.spec.root, None)
        for one in reversed(below):
            self._changes.end(one, StateDelta(), ORPHANED, effects)
        self._changes.end(run, StateDelta(), end, effects)
        self._ending, self._idle = set(), {}
        if run.spec.root in self._runs:
            over = {one.spec.run_id for one in below}
            self._resting[run.spec.root] = {
                one.spec.run_id: one for one in idle if one.spec.run_id not in over
            }

    def _is_below(self, one: ActiveRun, run: ActiveRun) -> bool:
        link = one.spec.parent
        while link is not None:
            if link.run_id == run.spec.run_id:
                return True
            above = self._idle.get(link.run_id)
            link = None if above is None else above.spec.parent
        return False


def _is_child(run: ActiveRun, parent: str) -> bool:
    return run.spec.parent is not None and run.spec.parent.run_id == parent


def _spec_of(parent: RunSpec, start: ChildStart, number: int) -> RunSpec:
    """A child of a run.

    Args:
        parent: The run.
        start: What it is to be.
        number: The how many-th child of that run it is, from 1.
    """
    run_id, above = f"{parent.run_id}{CHILD_MARK}{number}", parent.parent
    link = ParentLink(
        run_id=parent.run_id,
        root=parent.root,
        call_id=start.call_id,
        agent=start.agent if above is None else f"{above.agent}/{start.agent}",
        pool=start.pool,
        depth=1 if above is None else above.depth + 1,
        most_words=start.most_words,
        typed=start.typed,
    )
    made_with, workspace = parent.made_with, parent.workspace
    return RunSpec(
        run_id=run_id,
        conversation_id=run_id,
        task=(Message.user(start.task),),
        code=parent.code,
        config=start.config,
        edges=DEFAULT_EDGES,
        keys=parent.keys,
        # It is there: its parent works in it.
        workspace=None if workspace is None else replace(workspace, source=None),
        made_with=None
        if made_with is None
        else replace(made_with, agent=start.agent, model=start.model),
        late_hooks=parent.late_hooks,
        parent=link,
    )
