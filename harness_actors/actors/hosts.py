"""What runs inside an executor's actor: a plain class that serves many runs at once."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import assert_never, cast

from harness_actors.actors.code import unpack
from harness_actors.actors.mailbox import Code, Outbox, Parcel, Peer, SeenEnvelopes
from harness_actors.actors.processes import mark_of_this_process
from harness_actors.conversation import Conversation
from harness_actors.coordination.graph import Workflow
from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Committed,
    Cut,
    Deliver,
    Envelope,
    Forget,
    FromHost,
    Park,
    Slot,
    SnapshotWanted,
    ToolsStarted,
)
from harness_actors.errors import AgentCodeError, error_facts
from harness_actors.executors.context import DeltaContext
from harness_actors.ports import Agent, Executor
from harness_actors.records import ProcessMark, RunSpec
from harness_actors.results import Reason
from harness_actors.signals import Outcome, RunEnd
from harness_actors.state import StateDelta

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ServedRun:
    """What a host knows of a run: its spec, a replica of its log, and the step in progress."""

    spec: RunSpec
    log: Conversation = field(default_factory=Conversation)
    step: int = 0
    sent: int = 0
    context: DeltaContext | None = None
    commits: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """By number of the change: who waits for its commit."""
    task: asyncio.Task[None] | None = None


class ExecutorHost:
    """Runs one executor for every run that is routed to its slot.

    Args:
        slot: The slot that it fills.
        executor: What it hosts; None where the executor comes in the run's own code.
        coordinator: Where answers go.
        term: Term of that coordinator.
    """

    def __init__(
        self, slot: Slot, executor: Executor | None, coordinator: Peer, *, term: int
    ) -> None:
        self._slot = slot
        self._executor = executor
        self._term = term
        self._outbox = Outbox()
        self._outbox.connect(coordinator)
        self._seen = SeenEnvelopes()
        self._runs: dict[str, ServedRun] = {}
        self._workflows: dict[str, Workflow | AgentCodeError] = {}

    async def hello(self) -> ProcessMark:
        return mark_of_this_process(str(self._slot))

    async def watch(self) -> None:
        """Never returns: the call fails when the process of this actor dies."""
        await asyncio.Event().wait()

    async def receive(self, batch: Sequence[Parcel]) -> None:
        # Only enqueue: an answer is a message of its own, so the caller's one call in
        # flight is free again before any work is done.
        for parcel in batch:
            if isinstance(parcel, Code):
                self._learn(parcel)
            elif parcel.term == self._term and self._seen.is_new(parcel):
                self._take(parcel)

    def close(self) -> None:
        """Cancel everything in progress. Only a host that shares its process needs it."""
        self._outbox.close()
        for run in self._runs.values():
            if run.task is not None:
                run.task.cancel()

    def _learn(self, code: Code) -> None:
        try:
            workflow = unpack(code.blob)
        except AgentCodeError as error:
            # Told to each run that needs it, as its result.
            self._workflows[code.code] = error
            return
        use_keys = getattr(workflow.agent.model, "use_keys", None)
        if use_keys is not None:
            use_keys(code.keys)
        self._workflows[code.code] = workflow

    def _take(self, envelope: Envelope) -> None:
        run = self._runs.get(envelope.run_id)
        match envelope.body:
            case Deliver() as deliver:
                self._deliver(envelope, deliver)
            case Committed(change):
                if run is not None and (waiting := run.commits.pop(change, None)):
                    waiting.set_result(None)
            case Park():
                if run is not None and run.context is not None:
                    run.context.parking = True
            case Cut():
                if run is not None and run.task is not None:
                    run.task.cancel()
            case Forget():
                self._runs.pop(envelope.run_id, None)
                self._seen.forget(envelope.run_id)
            case Changed() | Answered() | ToolsStarted() | SnapshotWanted():
                logger.warning("%s got %r, which only a coordinator gets", self._slot, envelope)
            case other:
                assert_never(other)

    def _deliver(self, envelope: Envelope, deliver: Deliver) -> None:
        run = self._runs.get(envelope.run_id)
        if deliver.spec is not None:
            before = run.task if run is not None else None
            run = self._runs[envelope.run_id] = ServedRun(deliver.spec, task=before)
        elif run is None or len(run.log) != deliver.log_from:
            # Known to the coordinator by another length: begin again with all of it.
            self._runs.pop(envelope.run_id, None)
            body = SnapshotWanted()
            self._outbox.post(Envelope(envelope.run_id, self._term, envelope.step, 1, body))
            return
        run.step, run.sent = envelope.step, 0
        run.commits.clear()
        run.log.extend(deliver.log)
        run.task = asyncio.get_running_loop().create_task(self._serve(run, deliver, run.task))

    async def _serve(
        self, run: ServedRun, deliver: Deliver, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None and not before.done():
            # A cut step may still be ending its processes.
            await asyncio.wait([before])
        context: DeltaContext | None = None
        try:
            executor, agent = self._program(run.spec.code)
            run.context = context = DeltaContext(
                spec=run.spec,
                agent=agent,
                writer_name=self._slot.executor,
                reads=executor.reads,
                values=deliver.values,
                # A user's executor may add messages, so its copy of the log is kept whole.
                log=run.log if executor.reads_log or self._slot.code else None,
                started_at=deliver.started_at,
                send=lambda delta: self._send_change(run, delta),
                on_tools_started=lambda: self._post(run, ToolsStarted()),
                parking=deliver.parking,
            )
            outcome: Outcome = await executor.handle(deliver.signal, context)
        except asyncio.CancelledError:
            # Cut by the coordinator, which has gone on without this step.
            raise
        except Exception as error:
            logger.info("%s failed run %s", self._slot, run.spec.run_id, exc_info=True)
            outcome = _failure(self._slot, error)
        self._post(run, Answered(context.take() if context else StateDelta(), outcome))

    def _program(self, code: str) -> tuple[Executor, Agent]:
        """Who serves a run of this code, and its agent."""
        workflow = self._workflows.get(code)
        if isinstance(workflow, AgentCodeError):
            raise workflow
        if self._executor is not None and workflow is None:
            # Only hosts that run a user's code are sent it; ours do not look at the agent.
            return self._executor, cast(Agent, None)
        if workflow is None:
            raise AgentCodeError(f"executor {self._slot.executor!r}", "its code never came")
        return self._executor or workflow.executors[self._slot.executor], workflow.agent

    def _send_change(self, run: ServedRun, delta: StateDelta) -> Awaitable[None]:
        self._post(run, Changed(delta))
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        run.commits[run.sent] = committed
        return committed

    def _post(self, run: ServedRun, body: FromHost) -> None:
        run.sent += 1
        envelope = Envelope(run.spec.run_id, self._term, run.step, run.sent, body)
        self._outbox.post(envelope)


def _failure(slot: Slot, error: Exception) -> RunEnd:
    facts = error_facts(error)
    message = f"{slot}: {facts['type']}: {facts['message']}"
    return RunEnd(
        status="failed", reason=Reason(kind="agent_error", message=message, details=facts)
    )
