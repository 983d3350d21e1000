"""Real runs on the local runtime, and their recordings."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import ToolError
from harness_actors.events import ContinuationPrompt, Event, RunCompleted
from harness_actors.messages import Message
from harness_actors.ports import Clock, ModelRequest, ModelResponse, Tool, ToolContext
from harness_actors.records import Entry, RunAdded, RunChanged
from harness_actors.replay import Recording, Replay, load_recording, replay
from harness_actors.results import HarnessResult, Reason, Status, Usage
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.testing.scripted import Script
from harness_actors.tools import tool
from tests.actors.followers import opened, results, until

FIRST_COMMAND, SECOND_COMMAND = "first", "second"


@tool
async def write(text: str) -> str:
    """Write something; not idempotent.

    Args:
        text: What.
    """
    return f"wrote {text}"


@tool(effect="read_only")
async def read(text: str) -> str:
    """Read something.

    Args:
        text: What.
    """
    return f"read {text}"


@tool
async def fail(how: str) -> str:
    """Fail.

    Args:
        how: In which way.
    """
    if how == "told":
        raise ToolError("it did not work")
    raise ValueError("x" * 10_000)


@tool(effect="read_only")
async def long(characters: int) -> str:
    """Answer with a long text.

    Args:
        characters: How long.
    """
    return "".join(str(number % 10) for number in range(characters))


@tool(timeout_s=0.05)
async def slow() -> str:
    """Take too long."""
    await asyncio.Event().wait()
    return "never"


@tool
async def hang(context: ToolContext) -> str:
    """Take as long as somebody lets it."""
    await asyncio.Event().wait()
    return "never"


@tool(effect="read_only", volatile=True)
async def look_long(context: ToolContext) -> str:
    """Look for as long as somebody lets it."""
    await asyncio.Event().wait()
    return "never"


TOOLS: tuple[Tool, ...] = (write, read, fail, long, slow, hang, look_long)


class CountingModel:
    """A scripted model that reports its use and its cost."""

    name = "counting"
    costs_known = True
    key_names: tuple[str, ...] = ()

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        self._model = ScriptedModel(script)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answer = await self._model.complete(request)
        usage = Usage(model_calls=1, input_tokens=100, output_tokens=10, cost_usd=0.01)
        return ModelResponse(
            text=answer.text,
            tool_calls=answer.tool_calls,
            finish_reason=answer.finish_reason,
            usage=usage,
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


class SilentModel:
    """Follows its script, and when that is used up never answers."""

    name = "silent"
    key_names: tuple[str, ...] = ()

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = tuple(replies)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        spoken = sum(message.role == "assistant" for message in request.messages)
        if spoken >= len(self._replies):
            await asyncio.Event().wait()
        return await ScriptedModel(self._replies).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


class GatedModel(SilentModel):
    """Gives its answers when a file is there, and then all at once."""

    def __init__(self, replies: Sequence[Reply], gate: str) -> None:
        super().__init__(replies)
        self._gate = gate

    async def complete(self, request: ModelRequest) -> ModelResponse:
        while not Path(self._gate).exists():  # noqa: ASYNC110, ASYNC240 - it may be another loop's
            await asyncio.sleep(0.005)
        return await super().complete(request)


def with_another_nudge(recording: Recording) -> Recording:
    """As if the harness had had other words when the run was recorded."""
    changes = [
        replace(change, delta=replace(change.delta, messages=(Message.user("keep going"),)))
        if any(isinstance(event, ContinuationPrompt) for event in change.delta.events)
        else change
        for change in recording.changes
    ]
    return replace(recording, changes=tuple(changes))


def ended_otherwise(recording: Recording, status: Status, kind: str, message: str) -> Recording:
    """As if the run had been ended by something else at the same moment."""
    assert recording.end is not None
    *before, last = recording.changes
    words = RunCompleted(status=status, reason=kind, message=message)
    last = replace(last, delta=replace(last.delta, events=(words,)))
    end = replace(recording.end, status=status, reason=Reason(kind=kind, message=message))
    return replace(recording, changes=(*before, last), end=end)


def write_journal(recording: Recording, store: Path) -> None:
    """A journal that holds a recording, as it is."""
    journal = SqliteJournal(store)
    spec, at = recording.spec, recording.added_at
    entries: list[Entry] = [RunAdded(spec=spec, command="", at=at)]
    for change in recording.changes:
        last = change is recording.changes[-1]
        entries.append(
            RunChanged(
                run_id=spec.run_id,
                version=change.version,
                delta=change.delta,
                hop=change.hop,
                losses=change.losses,
                end=recording.end if last else None,
                at=change.at,
            )
        )
    journal.commit(journal.begin_term(), entries)
    journal.close()


def done(summary: str = "all done") -> Reply:
    return Reply.call("work_complete", {"summary": summary})


def program(model: Any, tools: Sequence[Tool] = TOOLS) -> Program:
    """An agent on a model, or on a list of replies."""
    if isinstance(model, list):
        model = ScriptedModel(model)
    return Program.of(ChatAgent(model=model, tools=tools, instructions="Be brief."))


@dataclass
class Session:
    """One run on a journal, which may be cut and taken up again."""

    store: Path
    program: Program
    settings: dict[str, Any] = field(default_factory=dict)
    task: str | tuple[Message, ...] = "the task"
    run_id: str = "run"
    conversation_id: str = "run"
    metadata: dict[str, Any] = field(default_factory=dict)

    async def submit(self, runtime: LocalRuntime) -> None:
        spec = self.program.spec(
            self.task,
            HarnessConfig.from_mapping(self.settings),
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            metadata=self.metadata,
        )
        await runtime.submit([spec], code=self.program.stored, secrets={})

    async def to_its_end(self) -> HarnessResult:
        async with opened_locally(self.store, FIRST_COMMAND) as runtime:
            await self.submit(runtime)
            return (await results(runtime, [self.run_id]))[self.run_id]

    async def taken_up(self, command: str = SECOND_COMMAND) -> HarnessResult:
        """Resume it, as another command does, to its end."""
        async with opened_locally(self.store, command) as runtime:
            await runtime.resume([self.run_id], secrets={})
            return (await results(runtime, [self.run_id]))[self.run_id]

    async def until(self, wanted: Callable[[Event], bool], runtime: LocalRuntime) -> None:
        await until(runtime, self.run_id, wanted)

    def recording(self) -> Recording:
        return load_recording(JournalReader(self.store), self.run_id)

    async def replayed(self) -> Replay:
        return await replay(self.recording())


@asynccontextmanager
async def opened_locally(
    store: Path, command: str, clock: Clock | None = None
) -> AsyncIterator[LocalRuntime]:
    async with opened("local", store, command=command, clock=clock) as runtime:
        assert isinstance(runtime, LocalRuntime)
        yield runtime


async def recorded(
    store: Path, agent: Program | Workflow | list[Reply] | Any, **settings: Any
) -> Session:
    """A run that is over."""
    session = Session(store, agent if isinstance(agent, Program) else program(agent), settings)
    await session.to_its_end()
    return session
