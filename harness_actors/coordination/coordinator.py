"""The coordinator: takes what happened to its runs, and returns what is to be done.

It is synchronous and does nothing itself, so that the same code runs in an actor, in
one process, and under a scheduler that kills it between any two steps. Whatever it
wants posted leaves only after the entries of the same step are on disk.
"""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from harness_actors.conversation import Conversation
from harness_actors.coordination.active import (
    ActiveRun,
    ExecutorNeeds,
    Post,
    Step,
    closed_elsewhere,
)
from harness_actors.coordination.endings import (
    CANCELLED,
    agent_error,
    executor_lost,
    last_words,
    result_of,
)
from harness_actors.coordination.graph import ENTRY, successor
from harness_actors.coordination.protocol import (
    QUARANTINE,
    Answered,
    Changed,
    Committed,
    Cut,
    Deliver,
    Envelope,
    Forget,
    Park,
    Slot,
    SnapshotWanted,
    ToHost,
    ToolsStarted,
)
from harness_actors.coordination.routing import LOSSES_BEFORE_FAILURE, Replica, Router
from harness_actors.errors import ConversationBusyError, WorkflowError
from harness_actors.events import ExecutorLost, RunParked
from harness_actors.messages import Message
from harness_actors.ports import Clock
from harness_actors.records import Hop, RunAdded, RunChanged, RunSpec, SnapshotTaken, StoredRun
from harness_actors.results import HarnessResult
from harness_actors.signals import Outcome, Parked, RepairTrigger, RunEnd
from harness_actors.state import (
    AGENT_TURN,
    OPEN_CALLS,
    TURN_COUNT,
    SharedState,
    StateDelta,
)

CHANGES_PER_SNAPSHOT = 64


class Coordinator:
    """Owns the state of its runs and decides who serves them next.

    Args:
        term: Which incarnation this is; every envelope carries it.
        command: The command that submits runs.
        needs: What each of our executors is sent, by name.
        agent_turns: Number of agent turn hosts, at least 1.
        clock: Dates what is committed.
    """

    def __init__(
        self,
        *,
        term: int,
        command: str,
        needs: Mapping[str, ExecutorNeeds],
        agent_turns: int,
        clock: Clock,
    ) -> None:
        self.term = term
        self._command = command
        self._needs = needs
        self._router = Router(agent_turns)
        self._clock = clock
        self.runs: dict[str, ActiveRun] = {}
        self._conversations: dict[str, str] = {}
        # Of all runs together: a run that is taken up again in this term must not get a
        # step number that an envelope of its life before may still carry.
        self._steps = count(1)

    # ---- what may happen ------------------------------------------------------------

    def submit(self, spec: RunSpec, log: Iterable[Message] = ()) -> Step:
        """A run was asked for.

        Args:
            spec: The run; one that is being served already is left as it is.
            log: The messages of the conversation that it continues.

        Raises:
            ConversationBusyError: Another run of its conversation is not over.
        """
        step = Step()
        if spec.run_id in self.runs:
            return step
        now = self._clock.now()
        hop = Hop(to=ENTRY, signal=RepairTrigger())
        run = ActiveRun(spec, SharedState(log=Conversation(log)), hop, now)
        self._claim(run)
        step.entries.append(RunAdded(spec=spec, command=self._command, at=now))
        self._deliver(run, step)
        return step

    def adopt(self, stored: StoredRun) -> Step:
        """A run of the journal is to go on: its process died, or a command takes it up.

        A hop that was on its way is sent again. A turn was perhaps in progress, so that
        one goes to repair first.
        """
        step = Step()
        if stored.spec.run_id in self.runs or stored.end is not None:
            return step
        hop = stored.hop or Hop(to=ENTRY, signal=RepairTrigger())
        run = ActiveRun(stored.spec, stored.state, hop, stored.added_at, stored.losses)
        self._claim(run)
        if stored.command != self._command:
            now = self._clock.now()
            step.entries.append(
                RunAdded(spec=stored.spec, command=self._command, at=now, again=True)
            )
        if closed := closed_elsewhere(run.state):
            self._changed(run, closed, step)
        self._retrace(run)
        self._deliver(run, step)
        return step

    def received(self, slot: Slot, envelope: Envelope) -> Step:
        """A host said something. What is old, or was said before, is dropped."""
        step = Step()
        run = self.runs.get(envelope.run_id)
        if (
            run is None
            or envelope.term != self.term
            or slot != run.slot
            or envelope.step != run.step
            or envelope.seq <= run.received
        ):
            return step
        run.received = envelope.seq
        try:
            self._take(run, envelope, step)
        except WorkflowError as error:
            # A user's executor made a change that its entry does not allow.
            self._leave(run, step)
            self._end(run, StateDelta(), agent_error(str(error)), step)
        return step

    def _take(self, run: ActiveRun, envelope: Envelope, step: Step) -> None:
        match envelope.body:
            case Changed(delta):
                self._changed(run, delta, step)
                self._post(run, Committed(envelope.seq), step)
            case Answered(delta, outcome):
                self._leave(run, step)
                self._answered(run, delta, outcome, step)
            case ToolsStarted():
                run.tools_running = True
            case SnapshotWanted():
                if run.slot is not None:
                    run.replicas.pop(run.slot, None)
                self._deliver(run, step)

    def host_lost(self, slot: Slot, cause: str = "") -> Step:
        """The process in a slot is gone. Its runs go on in the next one.

        Args:
            slot: Where it was.
            cause: Why it had to be killed; empty where it died by itself.
        """
        step = Step()
        for run in self.runs.values():
            run.replicas.pop(slot, None)
        # Listed first: one that leaves the quarantine host lets the next one in.
        for run in [run for run in self.runs.values() if run.slot == slot]:
            self._lost(run, slot, cause, step)
        return step

    def stop(self, run_id: str, mode: str) -> Step:
        """A user asked a run to stop; `mode` is a `StopMode`. One not served is ignored."""
        step = Step()
        run = self.runs.get(run_id)
        if run is None:
            return step
        if mode == "park":
            run.parking = True
            if run.slot is None:
                # It waits for the quarantine host, so there is no round to finish.
                self._park(run, StateDelta(), step)
            elif run.slot.executor == AGENT_TURN or run.slot.code:
                self._post(run, Park(), step)
            return step
        self._cut(run, step)
        if mode == "park_now":
            self._park(run, StateDelta(), step)
        else:
            self._end(run, StateDelta(), CANCELLED, step)
        return step

    def is_current(self, envelope: Envelope) -> bool:
        """Whether an envelope is to be posted still.

        While its step was being committed, the host may have died and the run gone on.
        """
        if isinstance(envelope.body, Cut | Forget):
            return True
        run = self.runs.get(envelope.run_id)
        return run is not None and run.step == envelope.step

    # ---- what follows from it -------------------------------------------------------

    def _claim(self, run: ActiveRun) -> None:
        conversation = run.spec.conversation_id
        if conversation in self._conversations:
            raise ConversationBusyError(conversation)
        self._conversations[conversation] = run.spec.run_id
        self.runs[run.spec.run_id] = run

    def _answered(self, run: ActiveRun, delta: StateDelta, outcome: Outcome, step: Step) -> None:
        match outcome:
            case RunEnd():
                self._end(run, delta, outcome, step)
            case Parked():
                self._park(run, delta, step)
            case signal:
                run.hop = Hop(to=successor(run.spec.edges, run.hop.to), signal=signal)
                if run.parking:
                    self._park(run, delta, step, moved=True)
                else:
                    self._changed(run, delta, step, moved=True)
                    self._deliver(run, step)

    def _changed(
        self,
        run: ActiveRun,
        delta: StateDelta,
        step: Step,
        *,
        moved: bool = False,
        end: HarnessResult | None = None,
    ) -> None:
        run.state.apply(delta)
        # Only results of tools: those that repair makes up for lost calls are no progress.
        at_turn = run.slot is not None and run.slot.executor == AGENT_TURN
        if at_turn and any(message.role == "tool" for message in delta.messages):
            run.losses = 0
            run.tools_running = False
        if run.slot in run.replicas:
            run.replicas[run.slot].messages = len(run.state.log)
        step.entries.append(
            RunChanged(
                run_id=run.spec.run_id,
                version=run.state.version,
                delta=delta,
                hop=run.hop if moved else None,
                losses=run.losses,
                end=end,
                at=self._clock.now(),
            )
        )
        if run.state.version % CHANGES_PER_SNAPSHOT == 0 and end is None:
            step.entries.append(
                SnapshotTaken(
                    run_id=run.spec.run_id,
                    version=run.state.version,
                    values=dict(run.state.values),
                )
            )

    def _deliver(self, run: ActiveRun, step: Step) -> None:
        """Post the run's hop to the host that is to serve it."""
        run_id, executor = run.spec.run_id, run.hop.to
        code = run.spec.code if executor in run.spec.custom else ""
        slot = self._router.slot_for(run_id, executor, code, run.losses)
        run.step = next(self._steps)
        run.sent = run.received = 0
        run.tools_running = False
        if slot.index == QUARANTINE and not self._router.isolate(run_id):
            run.slot = None
            return
        run.slot = slot
        replica = run.replicas.get(slot)
        needs = None if code else self._needs[executor]
        reads_log = needs is None or needs.log
        known = replica.messages if replica and reads_log else 0
        deliver = Deliver(
            signal=run.hop.signal,
            # A copy: it leaves later, and the state may have changed by then.
            values=_select(run.state.values, None if needs is None else needs.keys),
            log_from=known,
            log=tuple(run.state.log[known:]) if reads_log else (),
            started_at=run.started_at,
            parking=run.parking,
            spec=None if replica else run.spec,
        )
        run.replicas[slot] = Replica(len(run.state.log))
        self._post(run, deliver, step)

    def _post(self, run: ActiveRun, body: ToHost, step: Step) -> None:
        if run.slot is not None:
            run.sent += 1
            envelope = Envelope(run.spec.run_id, self.term, run.step, run.sent, body)
            step.posts.append(Post(run.slot, envelope))

    def _lost(self, run: ActiveRun, slot: Slot, cause: str, step: Step) -> None:
        self._leave(run, step)
        theirs = bool(slot.code) or (
            slot.executor == AGENT_TURN
            and (run.tools_running or bool(run.state.values.get(OPEN_CALLS.name)))
        )
        if theirs:
            run.losses += 1
            lost = ExecutorLost(executor=str(slot), losses=run.losses, cause=cause)
            delta = StateDelta(events=(lost,))
            alone = slot.index == QUARANTINE or bool(slot.code)
            if run.losses >= LOSSES_BEFORE_FAILURE and alone:
                self._end(run, delta, executor_lost(slot, run.losses, cause), step)
                return
            self._retrace(run)
            self._changed(run, delta, step, moved=True)
        else:
            self._retrace(run)
        self._deliver(run, step)

    def _retrace(self, run: ActiveRun) -> None:
        """A turn may have been under way, with calls whose outcome nobody knows."""
        if run.hop.to == AGENT_TURN:
            run.hop = Hop(to=ENTRY, signal=RepairTrigger(resumed=True))

    def _park(self, run: ActiveRun, delta: StateDelta, step: Step, *, moved: bool = False) -> None:
        turn = run.state.values.get(TURN_COUNT.name, 0)
        parked = StateDelta(delta.writes, delta.messages, (*delta.events, RunParked(turn=turn)))
        self._changed(run, parked, step, moved=moved)
        # No command's any more: the next incarnation must not go on with it unasked.
        step.entries.append(RunAdded(spec=run.spec, command="", at=self._clock.now(), again=True))
        self._forget(run, step)

    def _end(self, run: ActiveRun, delta: StateDelta, end: RunEnd, step: Step) -> None:
        if delta:
            self._changed(run, delta, step)
        result = result_of(run, end, now=self._clock.now())
        self._changed(run, last_words(run.state, end), step, end=result)
        self._forget(run, step)

    def _cut(self, run: ActiveRun, step: Step) -> None:
        self._post(run, Cut(), step)
        self._leave(run, step)

    def _leave(self, run: ActiveRun, step: Step) -> None:
        """The run is at its host no longer; another may have the quarantine host."""
        if run.slot is not None and run.slot.index == QUARANTINE:
            successor_id = self._router.released(run.spec.run_id)
            if successor_id is not None and successor_id in self.runs:
                self._deliver(self.runs[successor_id], step)

    def _forget(self, run: ActiveRun, step: Step) -> None:
        run_id = run.spec.run_id
        run.step = next(self._steps)
        for slot in run.replicas:
            envelope = Envelope(run_id, self.term, run.step, 1, Forget())
            step.posts.append(Post(slot, envelope))
        self._router.released(run_id)
        self._router.forget(run_id)
        del self.runs[run_id]
        del self._conversations[run.spec.conversation_id]


def _select(values: Mapping[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The entries of these names; None is all of them."""
    if names is None:
        return dict(values)
    return {name: values[name] for name in names if name in values}
