"""The coordinator: takes what happened to its runs, and returns what is to be done.

It is synchronous and does nothing itself, so that the same code runs in an actor, in
one process, and under a scheduler that kills it between any two steps. Whatever it
wants posted leaves only after the entries of the same effects are on disk.
"""

from collections.abc import Iterable, Mapping, Sequence

from harness_actors.conversation import Conversation
from harness_actors.coordination.active import ActiveRun, Effects, ExecutorNeeds
from harness_actors.coordination.at_once import AnswerAtOnce
from harness_actors.coordination.background import BackgroundCompaction
from harness_actors.coordination.budget import Budget
from harness_actors.coordination.ceilings import Ceilings
from harness_actors.coordination.children import Children
from harness_actors.coordination.closing import Closing
from harness_actors.coordination.deadlines import Deadlines
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import agent_error
from harness_actors.coordination.graph import ENTRY
from harness_actors.coordination.losses import Losses
from harness_actors.coordination.outcomes import Outcomes
from harness_actors.coordination.protocol import (
    COMPACTION_WORKER,
    Answered,
    Changed,
    Committed,
    Envelope,
    Proposed,
    Slot,
    SnapshotWanted,
    Summarized,
    SummaryWanted,
    ToolsStarted,
)
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.coordination.stopping import Stopping
from harness_actors.coordination.taking_up import TakingUp, taken_from
from harness_actors.coordination.waiting import Waits
from harness_actors.errors import WorkflowError
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.ports import Clock
from harness_actors.records import Hop, RunAdded, RunSpec, StoredRun
from harness_actors.signals import RepairTrigger
from harness_actors.state import (
    SharedState,
    StateDelta,
)


class Coordinator:
    """Owns the state of its runs and decides who serves them next.

    Args:
        term: Which incarnation this is; every envelope carries it.
        command: The command that submits runs.
        needs: What each of our executors is sent, by name.
        agent_turns: Number of agent turn hosts, at least 1.
        clock: Dates what is committed.
        workers: There are workers that summarize.
        at_once: Says what executors answer that have nothing to do; None where each is asked.
    """

    def __init__(
        self,
        *,
        term: int,
        command: str,
        needs: Mapping[str, ExecutorNeeds],
        agent_turns: int,
        clock: Clock,
        workers: bool = True,
        at_once: AnswerAtOnce | None = None,
    ) -> None:
        self.term = term
        self._command = command
        self._clock = clock
        self.runs: dict[str, ActiveRun] = {}
        self._dispatch = Dispatch(
            term=term, needs=needs, agent_turns=agent_turns, runs=self.runs, answer=at_once
        )
        self._deadlines = Deadlines(self.runs)
        self.budget = Budget()
        """What all runs may cost together, and have cost."""
        self._conversations: dict[str, str] = {}
        self.changes = RunChanges(
            self.runs, self._conversations, self._dispatch, self._deadlines, self.budget, clock
        )
        self._closing = Closing(self.runs, self.budget, self.changes, self._dispatch)
        self.children = Children(
            command, self.runs, self.changes, self._closing, self._dispatch, clock
        )
        self.changes.kin = self.children
        self._stopping = Stopping(
            command,
            self.changes,
            self._dispatch,
            self._deadlines,
            clock,
            self.children,
        )
        self._losses = Losses(self.runs, self.changes, self._dispatch)
        self.waits = Waits(self.runs, self.changes, clock)
        self._workers = workers
        self._background = BackgroundCompaction(self.runs, self.changes, self._dispatch, clock)
        self.changes.leaves_service = self._background.forget
        self._taking_up = TakingUp(
            command, self.changes, self.waits, self._closing, self.children, clock
        )
        self._outcomes = Outcomes(
            self.changes,
            self._dispatch,
            self.waits,
            self.children,
            self._background,
            Ceilings(clock),
        )
        self._dispatch.at_once.follow = self._outcomes.follow
        self.children.departures.leave = self._outcomes.leave
        self.children.departures.wait = self.waits.begin_with_those_below
        self.receipts, self.is_current = self._dispatch.receipts, self._dispatch.is_current

    # ---- what may happen ------------------------------------------------------------

    def submit(
        self, spec: RunSpec, log: Iterable[Message] = (), plan: CompactionPlan | None = None
    ) -> Effects:
        """A run was asked for.

        Args:
            spec: The run; one that is being served already is left as it is.
            log: The messages of the conversation that it continues.
            plan: How these are shown; None for as they are.

        Raises:
            ConversationBusyError: Another run of its conversation is not over.
        """
        effects = Effects()
        if spec.run_id in self.runs:
            return effects
        now = self._clock.now()
        hop = Hop(to=ENTRY, signal=RepairTrigger())
        run = ActiveRun(spec, SharedState(log=Conversation(log), plan=plan), hop, now)
        self.changes.begin(run)
        effects.entries.append(RunAdded(spec=spec, command=self._command, at=now))
        self._closing.note(run, effects)
        self._background.begun(run, effects)
        self._dispatch.deliver(run, effects)
        return self._settled(effects)

    def adopt(self, stored: StoredRun, *, asked: bool = False) -> Effects:
        """A run of the journal is to go on: its process died, or a command takes it up.

        A hop that was on its way is sent again. A turn was perhaps in progress, so that
        one goes to repair first. A run that was asked to park when its process died
        parks, unless a command takes it up.

        Args:
            stored: The run; one that is over or being served is left as it is, and so is a child
                whose parent is not served. Of a tree each comes after its parent, and `taken_up`
                after all of them.
            asked: The command asks for just this run, or for its tree.

        Raises:
            ConversationBusyError: Another run of its conversation is not over.
        """
        effects = Effects()
        link = stored.spec.parent
        if link is not None and link.run_id not in self.runs:
            if stored.end is None:
                self.children.rests(taken_from(stored))
            return effects  # it goes on when that one does
        if stored.spec.run_id not in self.runs and stored.end is None:
            self._taking_up.take_up(stored, effects, asked=asked)
        return effects

    def taken_up(self, root_id: str) -> Effects:
        """All runs of a tree were adopted; the one at the top has this id."""
        effects = Effects()
        if (top := self.runs.get(root_id)) is not None:
            self.children.departures.rest_again(self.children.tree_of(top), effects)
        return self._settled(effects)

    def answer(self, stored: StoredRun, answers: Mapping[str, str]) -> Effects:
        """A user answers a run that waits; whoever takes it up next goes on with that.

        What is answered once more in the same words was taken before, and changes nothing: the
        cell may have died before it could say so.

        Args:
            stored: The run as the journal has it.
            answers: By the id of the question.

        Raises:
            AnswerError: The run is over, in progress, or waits for no such answer.
        """
        effects = Effects()
        run = self.runs.get(stored.spec.run_id) or taken_from(stored)
        is_served = self.changes.serves(run)
        self.waits.answer(run, answers, effects, end=stored.end, is_served=is_served)
        return effects

    def resume(self, run_id: str) -> Effects:
        """A run that is served is to go on: one that was to park does not, after all."""
        effects = Effects()
        run = self.runs.get(run_id)
        if run is not None:
            self._stopping.go_on(run, effects)
        return self._settled(effects)

    def received(self, slot: Slot, envelope: Envelope) -> Effects:
        """A host said something. What is old, or was said before, is dropped."""
        effects = Effects()
        run = self.runs.get(envelope.run_id)
        if run is not None and envelope.term == self.term:
            self._received(run, slot, envelope, effects)
        return self._settled(effects) if self._dispatch.at_once.due else effects

    def _received(self, run: ActiveRun, slot: Slot, envelope: Envelope, effects: Effects) -> None:
        if slot != run.slot or envelope.hop_number != run.hop_number:
            # No hop has the number of a job.
            if isinstance(envelope.body, Summarized | Proposed):
                self._background.received(run, envelope, effects)
                self._closing.close_if_spent(effects)
        elif isinstance(envelope.body, ToolsStarted):
            self.changes.tools_started(run, envelope.body.tools, after=envelope.seq)
        elif isinstance(envelope.body, SummaryWanted):
            self._background.ask(envelope.run_id, envelope.body.keep, effects, awaited=False)
        elif envelope.seq > run.received:
            run.received = envelope.seq
            self._go_on(run, envelope, effects)

    def _go_on(self, run: ActiveRun, envelope: Envelope, effects: Effects) -> None:
        try:
            self._take(run, envelope, effects)
            if self._dispatch.at_once.due:
                # Before what it has cost counts: one that is done is to end as done.
                self._dispatch.at_once.settle(effects)
        except WorkflowError as error:
            # A user's executor made a change that its entry does not allow.
            self._dispatch.leave(run, effects)
            self.changes.end(run, StateDelta(), agent_error(str(error)), effects)
        if not isinstance(envelope.body, Changed):
            # What a change has cost is looked at before its receipt.
            self._close_if_spent(run, effects)
        if run.summarizes_at is not None and self._workers:
            self._background.consider(run, effects)

    def _settled(self, effects: Effects) -> Effects:
        """The same, with what follows where executors have nothing to do."""
        self._dispatch.at_once.settle(effects)
        return effects

    def _close_if_spent(self, run: ActiveRun, effects: Effects) -> None:
        """A run may have used what was left for all, or for its tree."""
        self._closing.close_if_spent(effects)
        if self.children.limits.has(run):
            tree = self.children.tree_of(run)
            self.children.limits.close_if_spent(run, tree, effects)

    def _take(self, run: ActiveRun, envelope: Envelope, effects: Effects) -> None:
        match envelope.body:
            case Changed(delta):
                self.changes.change(run, delta, effects)
                if run.busy_since is None and run.started_after >= envelope.seq:
                    # What it ends is not what has begun since.
                    self.changes.busy(run, run.announced)
                # Before it hears that its round is on disk, and begins another.
                self._close_if_spent(run, effects)
                self._dispatch.post(run, Committed(envelope.seq), effects)
            case Answered(delta, outcome):
                self._dispatch.leave(run, effects)
                self._outcomes.follow(run, delta, outcome, effects)
            case SnapshotWanted():
                if run.slot is not None:
                    run.replicas.pop(run.slot, None)
                self._dispatch.deliver(run, effects)

    def host_lost(self, slot: Slot, cause: str = "") -> Effects:
        """The process in a slot is gone. Its runs go on in the next one.

        Args:
            slot: Where it was.
            cause: Why it had to be killed; empty where it died by itself.
        """
        effects = self._losses.host_lost(slot, cause)
        if slot.kind == COMPACTION_WORKER:
            self._background.worker_lost(slot, cause, effects)
        return self._settled(effects)

    def host_missing(self, slot: Slot, cause: str) -> Effects:
        """No process is started in a slot, for this reason; the cell goes on without."""
        effects = Effects()
        if slot.kind == COMPACTION_WORKER:
            self._background.worker_lost(slot, cause, effects)
        else:
            self._losses.host_missing(slot, cause, effects)
        return self._settled(effects)

    def compact(self, run_id: str, keep: str = "") -> tuple[Effects, bool]:
        """The user of a run asks for a summary of its conversation.

        Args:
            run_id: The run; one that is still to come waits for its summary first.
            keep: What they want to be kept, in their words; empty for nothing of its own.

        Returns:
            What is to be done, and whether a summary is being made.
        """
        effects = Effects()
        will_be = self._background.ask(run_id, keep, effects)
        return self._settled(effects), will_be

    def stop(self, run_id: str, mode: str) -> Effects:
        """A user asked a run to stop; `mode` is a `StopMode`. One not served is ignored."""
        effects = Effects()
        run = self.runs.get(run_id)
        if run is not None:
            self._stopping.stop(run, mode, effects)
        return self._settled(effects)

    def stop_idle(
        self,
        stored: StoredRun,
        mode: str,
        *,
        shared: bool = False,
        tree: Sequence[StoredRun] = (),
    ) -> Effects:
        """A user asked a run of the journal to stop that nobody serves.

        Cancelled, it ends. Put aside is only one that this command had begun and could
        not go on with; the others are.

        Args:
            stored: The run.
            mode: A `StopMode`.
            shared: Another run of its conversation waits for its user, or has spoken since: what
                is open in their log belongs to that one.
            tree: The other runs of its tree that are not over, each after its parent.
        """
        if stored.end is not None:
            return Effects()
        if stored.spec.run_id in self.runs:
            return self.stop(stored.spec.run_id, mode)
        stopped = self._stopping.stop_idle(stored, mode, taken_from, shared=shared, tree=tree)
        return self._settled(stopped)

    def allow(self, limit_usd: float | None, *, spent_usd: float) -> Effects:
        """Say what all runs of this command may cost together.

        Where that is spent, no run makes a further model call: each ends `limit(budget)`
        after the round that it is in. What is allowed survives the coordinator with the
        runs that are begun under it; what is spent must be said again.

        Args:
            limit_usd: In US dollars, what earlier commands spent of it included; None for
                no bound.
            spent_usd: What those runs of the journal cost that were over when this term
                began.
        """
        effects = Effects()
        self.budget.allow(limit_usd, spent_usd=spent_usd)
        self._closing.note_all(effects)
        return self._settled(effects)

    def subscribe(self, run_ids: Iterable[str], stream: str) -> Effects:
        """Somebody reads what runs say, from a stream actor of this name."""
        return self._dispatch.subscribe(run_ids, stream)

    def overdue(self) -> Effects:
        """Time passed: runs whose time is over, and that did not end by themselves, end, and those
        that have waited for a plan go on."""
        effects = self._stopping.overdue()
        self._background.overdue(effects)
        self.children.overdue(effects)
        return self._settled(effects)

    @property
    def next_overdue_at(self) -> float | None:
        """When `overdue` has something to do, in seconds since the epoch; None for never."""
        times = (self._deadlines.next(), self._background.next_due, self.children.beside.next_due)
        return min([time for time in times if time is not None], default=None)

    @property
    def departures(self) -> int:
        """How many runs have left service in this term, or have ended that nobody served."""
        return self.changes.departures

    @property
    def conversations(self) -> Iterable[str]:
        """Those that a run continues."""
        return self._conversations.keys()

    def served_in(self, conversation_id: str) -> str | None:
        """The run that continues a conversation; None where none does."""
        return self._conversations.get(conversation_id)
