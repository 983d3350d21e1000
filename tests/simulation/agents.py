"""The agents of a schedule: a model that follows its plan, and tools that are watched."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from harness_actors.actors.simulated.processes import SimulatedMachine, current_process
from harness_actors.coordination.graph import HarnessWorkflowBuilder, Workflow
from harness_actors.errors import ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import (
    ModelRequest,
    ModelResponse,
    RunContext,
    ToolContext,
    ToolSpec,
)
from harness_actors.results import Usage
from harness_actors.signals import Outcome, Signal
from harness_actors.state import AGENT_TURN, StateKey
from tests.simulation.oracle import Oracle
from tests.simulation.workload import PlannedRound, PlannedTool, ToolKind, Workload

HANG_S = 3.0
STUBBORN_S = 0.4
PARAMETERS = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "takes_s": {"type": "number"}},
}
TALLY: StateKey[int] = StateKey("tally", int, "tally", "increment", 0)

KINDS: tuple[ToolKind, ...] = (
    "look",
    "again",
    "effect",
    "thread",
    "command",
    "fail",
    "hang",
    "stubborn",
    "crash",
    "crash_again",
)


def task_of(run_id: str) -> Message:
    return Message.user(f"[{run_id}] the task")


class PlannedModel:
    """Answers as its run's plan says; which run, and how far it is, the conversation says."""

    name = "planned"
    key_names: tuple[str, ...] = ()

    def __init__(self, workload: Workload, oracle: Oracle, chance: Random) -> None:
        self._workload = workload
        self._oracle = oracle
        self._chance = chance

    async def complete(self, request: ModelRequest) -> ModelResponse:
        run_id, spoken = where_in(request.messages)
        call = self._oracle.asked(run_id, request.messages)
        plan = self._workload.runs[run_id]
        planned = plan.rounds[spoken] if spoken < len(plan.rounds) else None
        if planned is not None and self._workload.fickle and self._chance.random() < 0.3:
            planned = PlannedRound((PlannedTool("effect", 0.01),), 0.01)
        try:
            await asyncio.sleep(planned.latency_s if planned else 0.05)
        except asyncio.CancelledError:
            self._oracle.ledger.end(call, "cut")
            raise
        response = self._answer(run_id, planned, len(request.messages), plan.config.completion)
        self._oracle.ledger.end(call, "answered")
        return response

    def _answer(
        self, run_id: str, planned: PlannedRound | None, position: int, completion: str
    ) -> ModelResponse:
        usage = Usage(model_calls=1, input_tokens=10 * position, output_tokens=10, cost_usd=0.01)
        if planned is None and completion == "explicit":
            done = ToolCall(self._id(position, 0), "work_complete", '{"summary":"done"}')
            return ModelResponse(
                text=None, tool_calls=(done,), finish_reason="tool_calls", usage=usage
            )
        if planned is None or not planned.calls:
            return ModelResponse(text=f"[{run_id}] says so", usage=usage)
        calls = tuple(
            ToolCall(
                self._id(position, place),
                call.kind,
                orjson.dumps(
                    {"key": f"{run_id}/{position}/{place}", "takes_s": call.takes_s}
                ).decode(),
            )
            for place, call in enumerate(planned.calls)
        )
        return ModelResponse(text=None, tool_calls=calls, finish_reason="tool_calls", usage=usage)

    def _id(self, position: int, place: int) -> str:
        return f"call_{place}" if self._workload.reused_ids else f"call_{position}_{place}"

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


def where_in(messages: Sequence[Message]) -> tuple[str, int]:
    """The run that a conversation is at, and how often the model has spoken in it."""
    spoken = 0
    for message in reversed(messages):
        if message.role == "assistant":
            spoken += 1
        elif message.role == "user" and message.text.startswith("[run-"):
            return message.text[1 : message.text.index("]")], spoken
    raise LookupError("a conversation without a task")


class WatchedTool:
    """A tool of one kind."""

    def __init__(self, kind: ToolKind, oracle: Oracle, machine: SimulatedMachine) -> None:
        self.kind = kind
        self._oracle = oracle
        self._machine = machine
        self.spec = ToolSpec(
            name=kind,
            description="A tool.",
            parameters=PARAMETERS,
            effect="read_only" if kind == "look" else "local_write",
            idempotent=kind in ("look", "again", "crash_again"),
            timeout_s=HANG_S if kind == "hang" else None,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        given = orjson.loads(arguments)
        key, takes_s = given["key"], given["takes_s"]
        call = self._oracle.called(self.kind, key, context, idempotent=self.spec.idempotent)
        ledger = self._oracle.ledger
        try:
            await self._work(key, takes_s, context)
        except asyncio.CancelledError:
            if self.kind == "stubborn":
                await asyncio.sleep(STUBBORN_S)
            ledger.end(call, "was cut")
            raise
        except ToolError:
            ledger.end(call, "failed")
            raise
        ledger.end(call, "ended")
        return f"done {key}"

    async def _work(self, key: str, takes_s: float, context: ToolContext) -> None:
        match self.kind:
            case "look" | "again":
                await asyncio.sleep(takes_s)
            case "effect" | "stubborn":
                await asyncio.sleep(takes_s / 2)
                self._oracle.effect(key)
                await asyncio.sleep(takes_s / 2)
            case "thread":
                await context.in_thread(self._oracle.effect, key)
            case "command":
                await self._in_its_process(key, takes_s)
            case "fail":
                raise ToolError(f"failed {key}")
            case "hang":
                await asyncio.Event().wait()
            case "crash" | "crash_again":
                await asyncio.sleep(takes_s)
                self._machine.end_process(current_process())
                await asyncio.Event().wait()

    async def _in_its_process(self, key: str, takes_s: float) -> None:
        """Have the effect in the process of the tools, which outlives this one a little."""
        process = current_process()
        loop = self._machine.loop
        ended: asyncio.Future[None] = loop.create_future()

        def work() -> None:
            self._oracle.effect(key)
            if not process.gone:
                loop.call_soon(_tell, ended, context=process.context)

        companion = process.companion
        assert companion is not None
        started = loop.call_later(takes_s, work, context=companion.context)
        try:
            await ended
        finally:
            started.cancel()


def _tell(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Tally:
    """A user's own executor: counts turns and passes on what it got."""

    name = "tally"
    reads: tuple[StateKey[Any], ...] = (TALLY,)
    reads_log = True

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        with self._oracle.serving(context, self.name):
            context.increment(TALLY, 1)
            await context.flush()
            await asyncio.sleep(0.01)
            return signal


@dataclass(frozen=True)
class PlannedAgent:
    model: PlannedModel
    tools: Sequence[WatchedTool]
    instructions: str = "Be brief."
    name: str = "agent"


_PROGRAMS: dict[str, Workflow] = {}


def program_of(name: str) -> Workflow:
    """What a blob is unpickled to: the live program, which costs nothing."""
    return _PROGRAMS[name]


@dataclass(frozen=True)
class Ticket:
    """What is pickled in a program's place."""

    name: str

    def __reduce__(self) -> tuple[Callable[[str], Workflow], tuple[str]]:
        return program_of, (self.name,)


def load_programs(
    workload: Workload, oracle: Oracle, machine: SimulatedMachine, chance: Random
) -> dict[str, bytes]:
    """The programs of a workload, and their blobs by name."""
    model = PlannedModel(workload, oracle, chance)
    agent = PlannedAgent(model, tuple(WatchedTool(kind, oracle, machine) for kind in KINDS))
    _PROGRAMS["plain"] = HarnessWorkflowBuilder(agent).build()
    custom = HarnessWorkflowBuilder(agent).insert_after(AGENT_TURN, Tally(oracle))
    _PROGRAMS["custom"] = custom.build()
    return {name: pickle.dumps(Ticket(name)) for name in _PROGRAMS}
