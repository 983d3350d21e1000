"""The agents of a schedule: a model that follows its plan, and tools that are watched."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import orjson

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.hosted import Reach
from harness_actors.actors.simulated.processes import SimulatedMachine
from harness_actors.agents import with_strategies
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import ContextOverflowError, ModelError
from harness_actors.messages import Message, ToolCall
from harness_actors.policies import Hooks
from harness_actors.ports import Agent, ModelRequest, ModelResponse, Tool
from harness_actors.results import Usage
from harness_actors.subagents import SubAgentSpec
from harness_actors.tools import ask_user
from tests.simulation.artifacts import READS
from tests.simulation.beside import ask_hosted_model, whole_answer_of, words_of
from tests.simulation.executors import build_workflow
from tests.simulation.gates import gates_of
from tests.simulation.held import bound
from tests.simulation.ledger import root_of
from tests.simulation.oracle import Oracle
from tests.simulation.pressing import PlannedStrategy
from tests.simulation.questions import ASKS, question_of
from tests.simulation.summarizing import PlannedSummarizer
from tests.simulation.tools import KINDS, WatchedTool, deafly
from tests.simulation.trees import delegating_call
from tests.simulation.valuing import value_at
from tests.simulation.waves import REPEATED
from tests.simulation.workload import PlannedRound, PlannedTool, ToolKind, Workload

REFUSED = "the provider of a child refuses"
PIECE, PIECE_S = 40, 0.1
"""Characters that a model says at once, and how often it does."""


def task_of(run_id: str) -> Message:
    return Message.user(f"[{run_id}] the task")


class PlannedModel:
    """Answers as its run's plan says; which run, and how far it is, the conversation says."""

    name = "planned"
    costs_known = True
    keys: Mapping[str, str] = {}
    """Those that it was given."""

    def __init__(self, workload: Workload, oracle: Oracle, chance: Random) -> None:
        self._workload = workload
        self._oracle = oracle
        self._chance = chance

    async def complete(self, request: ModelRequest) -> ModelResponse:
        name, _ = where_in(request.messages)
        run_id = self._oracle.kin.run_of(name)
        messages = self._oracle.pressing.unfolded(run_id, request.messages)
        _, spoken = where_in(messages)
        call = self._oracle.asked(run_id, messages)
        self._oracle.judging.offered(request.tools)
        plan, delegated = self._workload.runs[root_of(run_id)], self._oracle.kin.planned.get(name)
        self._oracle.check_keys(run_id, plan.keys, self.keys)
        rounds = plan.rounds if delegated is None else delegated.rounds
        planned = rounds[spoken] if spoken < len(rounds) else None
        if planned is not None and self._workload.fickle and self._chance.random() < 0.3:
            planned = PlannedRound((PlannedTool("effect", 0.01),), 0.01)
        try:
            await self._think(run_id, planned)
        except asyncio.CancelledError:
            self._oracle.ledger.end(call, "cut")
            raise
        try:
            self._oracle.pressing.check_window(run_id, len(request.messages), plan.real_window)
        except ContextOverflowError:
            self._oracle.ledger.end(call, "refused")
            raise
        if planned is None and delegated is not None and delegated.fails:
            self._oracle.ledger.end(call, "refused")
            raise ModelError("planned", REFUSED)
        response = self._answer(run_id, planned, messages, shown=len(request.messages))
        self._oracle.ledger.end(call, "answered")
        return response

    async def _think(self, run_id: str, planned: PlannedRound | None) -> None:
        if planned is not None and planned.deaf:
            await deafly(planned.latency_s)
        else:
            await asyncio.sleep(planned.latency_s if planned else 0.05)

    def _answer(
        self,
        run_id: str,
        planned: PlannedRound | None,
        messages: Sequence[Message],
        *,
        shown: int,
    ) -> ModelResponse:
        position, completion = len(messages), self._oracle.config_of(run_id).completion
        report = self._oracle.kin.report_of(run_id)
        tokens = self._oracle.pressing.request_tokens(shown)
        usage = Usage(model_calls=1, input_tokens=tokens, output_tokens=10, cost_usd=0.01)
        value = value_at(run_id, position) if self._oracle.is_typed(run_id) else None
        if planned is None and completion == "explicit":
            given = {"summary": report or "done"} | ({} if value is None else {"output": value})
            arguments = orjson.dumps(given).decode()
            done = ToolCall(self._id(position, 0), "work_complete", arguments)
            return ModelResponse(
                text=None, tool_calls=(done,), finish_reason="tool_calls", usage=usage
            )
        if planned is None and value is not None:
            return ModelResponse(text=orjson.dumps(value).decode(), usage=usage)
        if planned is None or not planned.calls:
            return ModelResponse(text=report or whole_answer_of(run_id), usage=usage)
        calls = tuple(
            self._call(
                call,
                "same" if planned.one_id else self._id(position, place),
                f"{run_id}/{position}/{place}",
                messages,
            )
            for place, call in enumerate(planned.calls)
        )
        self._oracle.waits.said(run_id, position, Message.assistant(None, calls))
        self._oracle.judging.answered(f"{run_id}/{position}")
        return ModelResponse(text=None, tool_calls=calls, finish_reason="tool_calls", usage=usage)

    def _call(
        self, planned: PlannedTool, call_id: str, key: str, messages: Sequence[Message]
    ) -> ToolCall:
        if planned.to is not None:
            if not planned.to.given and planned.to.agent != "agent_list":
                self._oracle.kin.said(key, planned.to)
            self._oracle.copying.called(key.partition("/")[0], planned.to)
            return delegating_call(planned.to, call_id, key)
        if planned.kind in READS:
            named = self._oracle.keeping.to_read(planned.kind, messages)
            return ToolCall(call_id, "read_artifact", orjson.dumps({"id": named}).decode())
        return _call(planned, call_id, key)

    def _id(self, position: int, place: int) -> str:
        return f"call_{place}" if self._workload.reused_ids else f"call_{position}_{place}"

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        name, _ = where_in(request.messages)
        run_id = self._oracle.kin.run_of(name)
        response = await self.complete(request)
        said = words_of(run_id)
        for place in range(0, len(said), PIECE):
            yield said[place : place + PIECE]
            await asyncio.sleep(PIECE_S)
        yield response


class KeyedModel(PlannedModel):
    """A planned model that needs a key."""

    def use_keys(self, keys: Mapping[str, str]) -> None:
        self.keys = keys


class HostedModel(PlannedModel):
    """The same, and it asks the model that its cell hosts before it answers."""

    needs_local_host = True

    def __init__(self, workload: Workload, oracle: Oracle, chance: Random, reach: Reach) -> None:
        super().__init__(workload, oracle, chance)
        self._reach = reach

    def connect(self, url: str) -> None:
        self.keys = {EMBEDDED_MODEL_URL: url}

    async def _think(self, run_id: str, planned: PlannedRound | None) -> None:
        url = self.keys[EMBEDDED_MODEL_URL]
        await ask_hosted_model(self._reach, url, run_id, self._oracle.ledger)
        await super()._think(run_id, planned)


def _call(planned: PlannedTool, call_id: str, key: str) -> ToolCall:
    """A call as a model makes it; of one that asks, its question names it."""
    if planned.kind in ASKS:
        arguments = orjson.dumps(question_of(planned.kind, key)).decode()
        return ToolCall(call_id, ask_user.spec.name, arguments)
    given = {"key": key, "takes_s": planned.takes_s}
    if planned.kind in REPEATED:
        given = {"key": f"{key.partition('/')[0]}/{planned.shelf}", "takes_s": 0.02}
    if planned.kind == "stow" and len(planned.shelf) > 1:
        given["other"] = planned.shelf[1]
    if planned.kind in ("peek", "stow"):
        given["shelf"] = planned.shelf[0]
    return ToolCall(call_id, planned.kind, orjson.dumps(given).decode())


def where_in(messages: Sequence[Message]) -> tuple[str, int]:
    """The run that a conversation is at, a child by the call that has begun it, and how often the
    model has spoken in it."""
    spoken = 0
    for message in reversed(messages):
        if message.role == "assistant":
            spoken += 1
        elif message.role == "user" and message.text.startswith("[run-"):
            return message.text[1 : message.text.index("]")], spoken
    raise LookupError("a conversation without a task")


@dataclass(frozen=True)
class PlannedAgent:
    model: PlannedModel
    tools: Sequence[Tool]
    instructions: str = "Be brief."
    name: str = "agent"
    hooks: Hooks | None = None
    middleware: Sequence[Any] = ()
    capabilities: Sequence[str] | None = None
    approvals: Any = None
    predicates: Mapping[str, Any] | None = None
    output_type: Any = None
    summarizer: Any = None
    strategies: Sequence[Any] = ()
    sub_agents: Sequence[SubAgentSpec] = ()


_PROGRAMS: dict[str, Callable[[], Workflow]] = {}


def program_of(name: str) -> Workflow:
    """What a blob is unpickled to: the live program, which costs little."""
    return _PROGRAMS[name]()


@dataclass(frozen=True)
class Ticket:
    """What is pickled in a program's place."""

    name: str

    def __reduce__(self) -> tuple[Callable[[str], Workflow], tuple[str]]:
        return program_of, (self.name,)


def _usual_workflow(agent: Agent) -> Workflow:
    """The default workflow, whose compaction asks the strategies of its agent."""
    return with_strategies(Workflow(agent))


def _same(workflow: Workflow) -> Workflow:
    return workflow


def load_programs(
    workload: Workload, oracle: Oracle, machine: SimulatedMachine, chance: Random, reach: Reach
) -> dict[str, bytes]:
    """The programs of a workload, and their blobs by name."""
    # What only some have, for it counts in the requests of all.
    own: dict[ToolKind, bool] = {"stow": workload.shelved, "write": workload.copying}
    kinds = (*KINDS, *(kind for kind, wished in own.items() if wished))
    tools: tuple[Tool, ...] = (*(WatchedTool(kind, oracle, machine) for kind in kinds), ask_user)
    summarizer = PlannedSummarizer(oracle.summarizing) if workload.summarized else None
    gates = gates_of(workload, oracle)
    gates["sub_agents"] = bound(workload.sub_agents, oracle.valuing)
    gated = partial(PlannedAgent, tools=tools, summarizer=summarizer, **gates)
    usual = partial(gated, strategies=(PlannedStrategy(),) if workload.strategic else ())
    model = PlannedModel(workload, oracle, chance)
    _PROGRAMS.clear()
    _PROGRAMS["plain"] = partial(_same, _usual_workflow(usual(model=model)))
    for name, planned in workload.workflows.items():
        _PROGRAMS[name] = partial(_same, build_workflow(gated(model=model), planned, oracle))
    # One for each host: what it was given in one process is not in another.
    _PROGRAMS["keyed"] = lambda: _usual_workflow(usual(model=KeyedModel(workload, oracle, chance)))
    _PROGRAMS["hosted"] = lambda: _usual_workflow(
        usual(model=HostedModel(workload, oracle, chance, reach))
    )
    return {name: pickle.dumps(Ticket(name)) for name in _PROGRAMS}
