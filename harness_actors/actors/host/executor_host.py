"""What runs inside an executor's actor: a plain class that serves many runs at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import assert_never, cast

from harness_actors.actors.host.custom_executor_checks import check_change, check_outcome
from harness_actors.actors.host.host_programs import LoadedPrograms
from harness_actors.actors.host.served_run import ServedRun
from harness_actors.actors.host.session_ends import SessionEnds
from harness_actors.actors.hosted import Hosted, Place
from harness_actors.actors.mailbox import Code, DropCode, Outbox, Parcel, SeenEnvelopes
from harness_actors.actors.output import Keeping
from harness_actors.actors.text.speaking import TextSender
from harness_actors.conversation import Conversation
from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Committed,
    Cut,
    Deliver,
    Envelope,
    Forget,
    FromHost,
    GoOn,
    Mail,
    Offered,
    Park,
    Proposed,
    Slot,
    SnapshotWanted,
    Speak,
    Summarize,
    Summarized,
    SummaryWanted,
    ToolsStarted,
)
from harness_actors.errors import AgentCodeError, WorkflowError, error_facts
from harness_actors.executors.context import DeltaContext
from harness_actors.ports import Agent, Executor
from harness_actors.records import RunSpec
from harness_actors.results import Reason, Usage
from harness_actors.signals import Outcome, RunEnd
from harness_actors.state import AGENT_TURN, USAGE, StateDelta
from harness_actors.turn.interruption import is_ctrl_c
from harness_actors.turn.tracebacks import user_traceback

logger = logging.getLogger(__name__)

CUT_GRACE_S = 1.0
"""How long a run that comes again waits for a hop of it that was cut and has not ended.
Tools and models take less: the turn leaves alone what does not end."""


class ExecutorHost(Hosted):
    """Runs one executor for every run that is routed to its slot.

    Args:
        executor: What it hosts; None where the executor comes in the run's own code.
        place: Where it is. The processes of a run's tools end when the run is forgotten, and
            all with the host.
        opened: Each closes what was opened for tools in this process.
    """

    def __init__(
        self,
        executor: Executor | None,
        place: Place,
        opened: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self._slot = place.slot
        self._opened = opened
        self._keeping: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
        if place.store is not None:
            self._keeping = partial(Keeping, place.store, executor=place.slot.executor)
        self._tool_processes = place.tool_processes
        self._sender = TextSender(place.reach, self._stop_text)
        self._executor = executor
        self._term = place.term
        self._outbox = Outbox(
            answered=self._take_receipts, undeliverable=self._undelivered, tell=place.tell
        )
        self._outbox.connect(place.coordinator)
        self._seen = SeenEnvelopes()
        self._programs = LoadedPrograms()
        self._ends = SessionEnds(executor, self._programs)
        self._runs: dict[str, ServedRun] = {}
        self._tasks: dict[str, set[asyncio.Task[None]]] = {}
        """By run: its hops that have not ended, also those that were cut."""

    async def receive(self, batch: Sequence[Parcel]) -> tuple[Envelope, ...]:
        # Only enqueue: an answer is a message of its own, so the caller's one call in
        # flight is free again before any work is done.
        for parcel in batch:
            if isinstance(parcel, Code | DropCode):
                self._programs.take(parcel)
            elif parcel.term == self._term and self._seen.is_new(parcel):
                self._take(parcel)
        return ()

    async def leave(self) -> None:
        for run_id in list(self._tasks):
            self._cut(run_id)
        await asyncio.gather(*(close() for close in self._opened))

    def close(self) -> None:
        self._ends.close()
        self._outbox.close()
        for run_id in list(self._tasks):
            self._cut(run_id)
        self._sender.close()
        if self._tool_processes is not None:
            self._tool_processes.close()

    def _take_receipts(self, answer: Sequence[Envelope]) -> None:
        """Take what is on disk, in whichever order that is heard."""
        for envelope in answer:
            run = self._runs.get(envelope.run_id)
            if run is None or run.hop_number != envelope.hop_number or envelope.term != self._term:
                continue
            assert isinstance(envelope.body, Committed)
            run.committed(envelope.body.change)

    def _undelivered(self, parcel: Parcel, error: Exception) -> None:
        """The coordinator cannot be told something of a run, which must not wait for that."""
        run = self._runs.get(parcel.run_id) if isinstance(parcel, Envelope) else None
        if run is None or not isinstance(parcel, Envelope) or run.hop_number != parcel.hop_number:
            return
        if isinstance(parcel.body, Answered) and isinstance(parcel.body.outcome, RunEnd):
            # What is plain text and yet not taken is no fault of the run's.
            return
        self._cut(run.spec.run_id)
        self._post(run, Answered(StateDelta(), _failure(self._slot, error)))

    def _take(self, envelope: Envelope) -> None:
        run = self._runs.get(envelope.run_id)
        match envelope.body:
            case Deliver() as deliver:
                self._deliver(envelope, deliver)
            case Committed():
                self._take_receipts((envelope,))
            case Park() | GoOn():
                if run is not None:
                    run.park(isinstance(envelope.body, Park))
            case Speak(stream):
                if run is not None:
                    self._start_text(run, stream)
            case Offered(version):
                if run is not None:
                    run.offer(version)
            case Mail(letters):
                if run is not None:
                    run.take_mail(letters)
            case Cut():
                self._cut(envelope.run_id)
            case Forget(end, turn):
                if run is not None and end is not None:
                    self._ends.tell(run.spec, end, turn)
                self._runs.pop(envelope.run_id, None)
                self._seen.forget(envelope.run_id)
                self._sender.over(envelope.run_id)
                if self._tool_processes is not None:
                    self._tool_processes.end_run(envelope.run_id)
            case (
                Changed()
                | Answered()
                | ToolsStarted()
                | SummaryWanted()
                | SnapshotWanted()
                | Summarize()
                | Summarized()
                | Proposed()
            ):
                logger.warning("%s got %r, which is for others", self._slot, envelope)
            case other:
                assert_never(other)

    def _deliver(self, envelope: Envelope, deliver: Deliver) -> None:
        run_id, known = envelope.run_id, self._runs.get(envelope.run_id)
        # The coordinator has gone on without a hop that is still in progress here.
        before = self._cut(run_id)
        if deliver.spec is not None:
            run = ServedRun(deliver.spec)
        elif known is not None and len(known.log) == deliver.log_from:
            # A copy, where a hop that was cut may not have ended: what it adds is its own.
            log = Conversation(known.log) if before else known.log
            run = ServedRun(known.spec, log, known.plan, known.viewer)
        else:
            # Known to the coordinator by another length: begin again with all of it.
            self._runs.pop(run_id, None)
            self._outbox.post(
                Envelope(run_id, self._term, envelope.hop_number, 1, SnapshotWanted())
            )
            return
        self._runs[run_id] = run
        run.hop_number, run.parking = envelope.hop_number, deliver.parking
        run.offered = deliver.offered
        run.log.extend(deliver.log)
        run.plan = deliver.plan or run.plan
        if deliver.stream:
            self._start_text(run, deliver.stream)
        task = asyncio.get_running_loop().create_task(self._serve(run, deliver, before))
        self._tasks.setdefault(run_id, set()).add(task)
        task.add_done_callback(partial(self._ended, run_id))

    def _start_text(self, run: ServedRun, stream: str) -> None:
        """Somebody reads what the model says in a run, from a stream actor of this name."""
        self._sender.follow(stream)
        if run.texts is None:
            run.speak(self._sender.speaker(run.spec.run_id, (self._term, run.hop_number)))

    def _stop_text(self, run_id: str) -> None:
        """Nobody reads a run any more, or what is still said in it is of a hop that is over."""
        run = self._runs.get(run_id)
        if run is not None and run.texts is not None:
            run.texts.close()
            run.speak(None)

    def _cut(self, run_id: str) -> set[asyncio.Task[None]]:
        """Cancel what is in progress for a run; returns what has not ended yet."""
        self._stop_text(run_id)
        tasks = {task for task in self._tasks.get(run_id, ()) if not task.done()}
        for task in tasks:
            # Once: a second time cuts off the wait for what it is ending.
            if not task.cancelling():
                task.cancel()
        return tasks

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        tasks = self._tasks[run_id]
        tasks.discard(task)
        if not tasks:
            del self._tasks[run_id]

    async def _serve(
        self, run: ServedRun, deliver: Deliver, before: set[asyncio.Task[None]]
    ) -> None:
        if before:
            # A cut hop may still be ending its processes. One that does not end is left
            # alone: whatever it says carries its own hop, which is over.
            _, left = await asyncio.wait(before, timeout=CUT_GRACE_S)
            for task in left:
                logger.warning("%s goes on beside a hop that does not end", run.spec.run_id)
                # It may have lost the first time in an `except` of its own.
                task.cancel()
        context: DeltaContext | None = None
        began = asyncio.get_running_loop().time()
        try:
            executor, agent = await self._program(run.spec)
            run.context = context = self._context(run, deliver, executor, agent)
            context.take_mail(run.mail)
            if self._slot.code and run.spec.config.limits.working_s is not None:
                # From here on, however long the start of this process took.
                context.tools_started()
            began = asyncio.get_running_loop().time()
            with self._keeping(run.spec.run_id):
                outcome = await executor.handle(deliver.signal, context)
            check_outcome(self._slot.executor, outcome, is_ours=not self._slot.code)
            last = self._last_of(context, began, outcome)
        except BaseException as error:
            if _was_cut(error) or is_ctrl_c(error):
                # The coordinator has gone on without this hop. And an actor's loop has a thread
                # of its own, in which nobody presses the keys.
                raise
            logger.info("%s failed run %s", self._slot, run.spec.run_id, exc_info=True)
            outcome = _failure(self._slot, error)
            last = self._left_by(context, began, outcome)
        finally:
            # It knows the run, too: a circle, in which the log would stay for the collector of
            # garbage, which seldom comes.
            run.context = None
            if run.log and self._is_sent_once:
                # The run may not come again for hours.
                run.log = Conversation()
        self._post(run, Answered(last, outcome))

    def _context(
        self, run: ServedRun, deliver: Deliver, executor: Executor, agent: Agent
    ) -> DeltaContext:
        """What the executor sees of the run in this hop."""
        return DeltaContext(
            spec=run.spec,
            agent=agent,
            writer_name=self._slot.executor,
            reads=executor.reads,
            values=deliver.values,
            # A user's executor may add messages, so its copy of the log is kept whole.
            # And where a window is full, it is sent to whoever makes room.
            log=run.log if executor.reads_log or self._slot.code or run.log else None,
            plan=run.plan,
            viewer=run.viewer,
            started_at=deliver.started_at,
            send=lambda delta: self._send_change(run, delta),
            # Before a tool that ends its process does: that it was this run's must be known.
            on_tools_started=partial(self._tools_started, run),
            on_summary_wanted=partial(self._summary_wanted, run),
            parking=run.parking,
            texts=run.texts,
            offer=None if deliver.offer is None else deliver.offer.as_pair,
            offered=run.offered,
        )

    def _tools_started(self, run: ServedRun, tools: tuple[str, ...]) -> None:
        # Of the number of what was posted before it, which it may overtake.
        self._outbox.tell(self._envelope(run, ToolsStarted(tools)))

    def _summary_wanted(self, run: ServedRun, keep: str) -> None:
        self._outbox.tell(self._envelope(run, SummaryWanted(keep)))

    def _left_by(self, context: DeltaContext | None, began: float, failed: RunEnd) -> StateDelta:
        """What a failed executor had written, as far as it can be committed."""
        try:
            return StateDelta() if context is None else self._last_of(context, began, failed)
        except WorkflowError:
            return StateDelta()

    def _last_of(self, context: DeltaContext, began: float, outcome: Outcome) -> StateDelta:
        """What goes with an answer; where a user's own executor gives it, with its time."""
        if self._slot.code:
            worked_s = asyncio.get_running_loop().time() - began
            context.increment(USAGE, Usage(working_s=worked_s))
        return self._checked(context.last(outcome))

    def _checked(self, delta: StateDelta) -> StateDelta:
        """What an executor has changed.

        Raises:
            WorkflowError: It is a user's own, and this cannot be committed.
        """
        if self._slot.code:
            check_change(self._slot.executor, delta)
        return delta

    @property
    def _is_sent_once(self) -> bool:
        """Whether the executor is sent a log only where a window is full."""
        if self._slot.code or self._executor is None:
            # A user's own may add messages, so its log is kept.
            return False
        return not self._executor.reads_log

    async def _program(self, spec: RunSpec) -> tuple[Executor, Agent]:
        """Who serves a run, and its agent."""
        workflow = await self._programs.find(spec.code)
        if workflow is None:
            # Only hosts that run a user's code are sent it; the others do not look at the agent.
            if self._executor is None or self._slot.executor == AGENT_TURN:
                raise AgentCodeError(f"the agent of {self._slot}", "the journal does not have it")
            return self._executor, cast(Agent, None)
        agent = self._programs.agent_of(spec, workflow)
        return self._executor or workflow.executors[self._slot.executor], agent

    def _send_change(self, run: ServedRun, delta: StateDelta) -> Awaitable[None]:
        self._post(run, Changed(self._checked(delta)))
        return run.until_committed()

    def _post(self, run: ServedRun, body: FromHost) -> None:
        self._outbox.post(self._next(run, body))

    def _next(self, run: ServedRun, body: FromHost) -> Envelope:
        run.sent += 1
        return self._envelope(run, body)

    def _envelope(self, run: ServedRun, body: FromHost) -> Envelope:
        return Envelope(run.spec.run_id, self._term, run.hop_number, run.sent, body)


def _was_cut(error: BaseException) -> bool:
    """Whether a hop was cancelled from outside; a cancellation of the executor's own is none."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _failure(slot: Slot, error: BaseException) -> RunEnd:
    facts = error_facts(error)
    message = f"{slot}: {facts['type']}: {facts['message']}"
    if traceback := user_traceback(error):
        facts["traceback"] = traceback
    return RunEnd(
        status="failed", reason=Reason(kind="agent_error", message=message, details=facts)
    )
