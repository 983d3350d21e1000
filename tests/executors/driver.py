"""Drives one run through the four executors as a coordinator would, in one process."""

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_actors.conversation import Conversation, repaired
from harness_actors.events import Event, TextSink, message_events
from harness_actors.executors import (
    AgentTurn,
    AgentTurnServices,
    Compaction,
    DeltaContext,
    Repair,
    StopDecision,
)
from harness_actors.messages import Message
from harness_actors.ports import (
    Agent,
    Executor,
    Model,
    ModelRequest,
    ModelResponse,
    Tool,
    ToolContext,
    ToolSpec,
)
from harness_actors.records import RunSpec, WorkspaceSpec
from harness_actors.results import Usage
from harness_actors.signals import (
    Outcome,
    Parked,
    RepairTrigger,
    RunEnd,
    Signal,
    Waiting,
    Yielded,
    decode_signal,
    encode_signal,
)
from harness_actors.state import (
    ANSWERS,
    PRESSURE,
    SharedState,
    StateDelta,
    StateKey,
    Write,
    observed_by,
    unanswered,
)
from harness_actors.testing.clock import ManualClock
from harness_actors.testing.scripted import Reply, Script, ScriptedModel
from tests.bounded import bounded

CYCLE = ("repair", "compaction", "agent_turn", "stop_decision")


class WordCounter:
    """A token is a word."""

    async def count(self, text: str) -> int:
        return len(text.split())


@dataclass
class SimpleTool:
    """A tool that does what a function says and remembers its calls."""

    name: str
    act: Callable[[str, ToolContext], Awaitable[Any]]
    idempotent: bool = False
    timeout_s: float | None = None
    volatile: bool = False
    calls: list[str] = field(default_factory=list)
    """Arguments of the calls that were started."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=f"Does {self.name}.",
            parameters={"type": "object"},
            effect="read_only" if self.idempotent else "local_write",
            timeout_s=self.timeout_s,
            volatile=self.volatile,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        self.calls.append(arguments)
        result: str = await self.act(arguments, context)
        return result


def a_tool(
    name: str = "write",
    answer: Any = "done",
    *,
    idempotent: bool = False,
    timeout_s: float | None = None,
    volatile: bool = False,
) -> SimpleTool:
    """A tool that answers with a text, or raises what it is given."""

    async def act(_arguments: str, _context: ToolContext) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return SimpleTool(name, act, idempotent=idempotent, timeout_s=timeout_s, volatile=volatile)


class RecordingModel:
    """A scripted model that remembers what it was sent.

    Args:
        script: Replies in their order, or a function of the conversation.
        facts: Fields of the responses in place of what the script makes of them; all
            that it reports of usage is left out unless given here.
        before: Awaited before each answer.
    """

    name = "scripted"

    def __init__(
        self,
        script: Script | Sequence[Reply],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
        **facts: Any,
    ) -> None:
        self._model = ScriptedModel(script)
        self._facts: dict[str, Any] = {"usage": Usage(model_calls=1), **facts}
        self.before = before
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        if self.before is not None:
            await self.before()
        return replace(await self._model.complete(request), **self._facts)

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        return self._model.stream(request)


@dataclass(frozen=True)
class SimpleAgent:
    model: Model
    tools: Sequence[Tool] = ()
    instructions: str = "Be brief."
    name: str = "agent"


def calls(*wanted: tuple[str, str] | tuple[str, str, str]) -> Reply:
    """A reply that calls tools, each given as id, name and perhaps arguments."""
    return Reply.calls(
        [(call[1], call[2] if len(call) > 2 else "{}") for call in wanted],
        ids=[call[0] for call in wanted],
    )


def finishes(summary: str = "all done") -> Reply:
    return Reply.call("work_complete", {"summary": summary})


class ProcessDiedError(Exception):
    """The process died at the step that was chosen for it."""


@dataclass
class CrashPlan:
    """Where the process dies: after so many steps. Everything may be a step."""

    steps_left: int | None = None
    steps: int = 0

    def due(self) -> bool:
        self.steps += 1
        if self.steps_left is None:
            return False
        self.steps_left -= 1
        return self.steps_left < 0


class Driver:
    """One run, its committed state, and the executors that serve it."""

    def __init__(
        self,
        agent: Agent,
        task: str | tuple[Message, ...] = "the task",
        *,
        workspace: WorkspaceSpec | None = None,
        log: Sequence[Message] = (),
        lag: int = 0,
        end_processes: Callable[[str], Awaitable[None]] | None = None,
        **settings: Any,
    ) -> None:
        self.agent = agent
        self.spec = RunSpec(
            run_id="run",
            conversation_id="run",
            task=(Message.user(task),) if isinstance(task, str) else task,
            code="",
            config=bounded(settings),
            edges=(),
            workspace=workspace,
        )
        self.state = SharedState(log=Conversation(log))
        self.clock = ManualClock()
        self.started_at = self.clock.now()
        self.events: list[Event] = []
        self.deltas: list[StateDelta] = []
        self.context: DeltaContext | None = None
        self.prepared_workspaces: list[WorkspaceSpec] = []
        self.tool_notices = 0
        self.parking = False
        self.answer: Callable[[str], str] | None = None
        """What the user says to a question; None leaves the run waiting."""
        self.texts: TextSink | None = None
        self.hop: tuple[str, Signal] = ("repair", RepairTrigger())
        self.lag = lag
        """How many further changes are posted before one is committed by itself."""
        self.crash = CrashPlan()
        self._dead: asyncio.Event | None = None
        self._posted: deque[tuple[StateDelta, asyncio.Future[None]]] = deque()
        self._end_processes = end_processes
        self.executors = self._start()

    async def step(self) -> None:
        """To be called by tools and models where the process may die."""
        if self.crash.due():
            self._die()
        if self._dead is not None and self._dead.is_set():
            await asyncio.Event().wait()

    async def run(self, *, resumed: bool = False) -> RunEnd | Parked | Waiting:
        """Serve the run until it ends, parks or waits.

        Args:
            resumed: It was interrupted: a hop that was on its way is sent again, and a
                turn that was perhaps in progress goes to repair first.

        Raises:
            ProcessDiedError: It died; what was committed is in `state`.
        """
        if resumed and self.hop[0] == "agent_turn":
            self.hop = ("repair", RepairTrigger(resumed=True))
        while True:
            outcome = await self.serve(*self.hop)
            if isinstance(outcome, Waiting) and self.answer is not None:
                self.take_answers(self.answer)
                self.hop = ("repair", RepairTrigger(resumed=True))
                continue
            if isinstance(outcome, RunEnd | Parked | Waiting):
                return outcome
            if isinstance(outcome, Yielded):
                self.hop = ("repair", RepairTrigger())
                continue
            signal = decode_signal(pickle.loads(pickle.dumps(encode_signal(outcome))))
            self.hop = (CYCLE[(CYCLE.index(self.hop[0]) + 1) % len(CYCLE)], signal)

    def take_answers(self, answer: Callable[[str], str]) -> None:
        """Commit the answers of the user to all that is asked."""
        for one in unanswered(self.state.values):
            given = [one["id"], answer(one["text"])]
            self._apply(StateDelta((Write(ANSWERS.name, "put", given),)))

    @property
    def model(self) -> RecordingModel:
        assert isinstance(self.agent.model, RecordingModel)
        return self.agent.model

    async def run_through_crashes(self, *plans: int) -> RunEnd | Parked | Waiting:
        """Serve the run; it dies at each of the given steps and is taken up again."""
        resumed = False
        for steps in plans:
            self.crash = CrashPlan(steps)
            try:
                return await self.run(resumed=resumed)
            except ProcessDiedError:
                self.executors = self._start()
                resumed = True
        self.crash = CrashPlan()
        return await self.run(resumed=resumed)

    async def serve(self, name: str, signal: Signal) -> Outcome:
        """Have one executor serve one signal, and commit what comes of it."""
        executor = self.executors[name]
        self._dead = asyncio.Event()
        self._posted.clear()
        self.context = self.open_context(name)
        work = asyncio.ensure_future(executor.handle(signal, self.context))
        death = asyncio.ensure_future(self._dead.wait())
        await asyncio.wait((work, death), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if self._dead.is_set() or self.crash.due():
            work.cancel()
            await asyncio.wait((work,))
            raise ProcessDiedError
        # Also what one has written that fails, as of a host.
        self._commit(len(self._posted))
        if work.exception() is not None:
            self._apply(self.context.take())
        else:
            self._apply(self.context.last(work.result()))
        return work.result()

    def open_context(self, name: str) -> DeltaContext:
        """What an executor gets to see: copies, as if from another process."""
        executor = self.executors[name]
        wanted = {observed_by(name), *(key.name for key in executor.reads)}
        names = wanted & self.state.values.keys()
        return DeltaContext(
            spec=pickle.loads(pickle.dumps(self.spec)),
            agent=self.agent,
            writer_name=name,
            reads=executor.reads,
            values=pickle.loads(pickle.dumps({key: self.state.values[key] for key in names})),
            log=Conversation(self.state.log) if executor.reads_log or self._is_full() else None,
            plan=pickle.loads(pickle.dumps(self.state.plan)),
            started_at=self.started_at,
            send=self._send,
            on_tools_started=self._notice,
            parking=self.parking,
            texts=self.texts,
        )

    def _is_full(self) -> bool:
        pressure = self.value(PRESSURE)
        return pressure is not None and pressure.waits

    def value(self, key: StateKey[Any]) -> Any:
        return key.decode(self.state.values.get(key.name, key.default))

    def happened(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def results(self) -> list[Message]:
        return [message for message in self.state.log if message.role == "tool"]

    def check_log(self) -> None:
        """Every call of the log has exactly one result right after it."""
        _, repairs = repaired(self.state.log)
        assert repairs == 0

    def _start(self) -> dict[str, Executor]:
        services = AgentTurnServices(
            counter_for=lambda _model: WordCounter(),
            clock=self.clock,
            in_thread=_inline,
            prepare_workspace=self._prepare,
        )
        return {
            "repair": Repair(self._end_processes),
            "compaction": Compaction(),
            "agent_turn": AgentTurn(services),
            "stop_decision": StopDecision(),
        }

    def _prepare(self, spec: WorkspaceSpec) -> Path:
        self.prepared_workspaces.append(spec)
        return Path(spec.path)

    def _notice(self, tools: tuple[str, ...]) -> None:
        self.tool_notices += 1

    def _send(self, delta: StateDelta) -> Awaitable[None]:
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.crash.due():
            self._die()
        if self._dead is not None and not self._dead.is_set():
            self._posted.append((pickle.loads(pickle.dumps(delta)), committed))
            self._commit(len(self._posted) - self.lag)
            # Whoever waits is served in the end, however far the disk is behind.
            asyncio.get_running_loop().call_soon(self._catch_up)
        return committed

    def _catch_up(self) -> None:
        if self._dead is not None and not self._dead.is_set():
            self._commit(1 if self._posted else 0)
            if self._posted:
                asyncio.get_running_loop().call_soon(self._catch_up)

    def _commit(self, count: int) -> None:
        for _ in range(count):
            delta, committed = self._posted.popleft()
            self._apply(delta)
            committed.set_result(None)

    def _apply(self, delta: StateDelta) -> None:
        self.state.apply(delta)
        self.deltas.append(delta)
        self.events += [*delta.events, *message_events(delta.messages)]

    def _die(self) -> None:
        if self._dead is not None:
            self._dead.set()


async def _inline(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
