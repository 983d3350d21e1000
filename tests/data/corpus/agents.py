"""Tools, models and executors of the recorded runs, beside those of `tests.replay`."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.events import CustomEvent
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ModelRequest, ModelResponse, RunContext, ToolContext, ToolSpec
from harness_actors.results import Usage
from harness_actors.signals import Outcome, Parked, Signal, TurnComplete
from harness_actors.state import AGENT_TURN, StateKey
from harness_actors.testing import ManualClock, Reply, ScriptedModel
from harness_actors.testing.scripted import Script
from harness_actors.tools import tool
from tests.replay.recorded_runs import TOOLS, done

NOTES: StateKey[int] = StateKey("corpus.notes", int, "notes", "increment", 0)
MADE: StateKey[int] = StateKey("corpus.made", int, AGENT_TURN, "increment", 0)


@dataclass
class Cues:
    """What the recorder and the agents tell each other; they share one process.

    Agents travel by value, so they import it when they are called.
    """

    clock: ManualClock = field(default_factory=ManualClock)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def clear(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()


CUES = Cues()


@tool(effect="read_only")
async def peek() -> str:
    """Look, and take as long as somebody lets it."""
    from tests.data.corpus.agents import CUES

    CUES.begun.set()
    await asyncio.Event().wait()
    return "never"


@tool(idempotent=True)
async def put(key: str, value: list[float] | None = None) -> str:
    """Store something under a key.

    Args:
        key: Where.
        value: What.
    """
    return f"{key} = {value}"


@tool(effect="network", timeout_s=0.05)
async def send(to: str) -> str:
    """Send something that never arrives.

    Args:
        to: Whom.
    """
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
    return to


@tool(effect="destructive")
async def say(what: str) -> str:
    """Say one of several things.

    Args:
        what: Which one.
    """
    match what:
        case "nothing":
            return ""
        case "characters":
            return (
                "Ünïcödé 漢字 \U0001f9d1\u200d\U0001f680 e\u0301 \u202eright to left\u202c \ufeff"
                " \x1b[31mred\x1b[0m \x00 \r\n\t end"
            )
        case "surrogate":
            return "half \ud83d of a pair"
        case "lines":
            return "\n".join(f"{number}: {'=' * (number % 70)}" for number in range(3000))
        case "refusal":
            raise ToolError("Nein: das geht nicht – 不行 🚫")
    raise KeyError(what)


CORPUS_TOOLS = (*TOOLS, peek, put, send, say)


class HeldModel:
    """A scripted model that tells that it was asked, and waits with one of its answers.

    Args:
        script: What it answers.
        held: Which answer it holds, counted from 0.
    """

    name = "held"
    key_names: tuple[str, ...] = ()
    costs_known = True

    def __init__(self, script: Script | Sequence[Reply], held: int) -> None:
        self._model = ScriptedModel(script)
        self._held = held

    async def complete(self, request: ModelRequest) -> ModelResponse:
        from tests.data.corpus.agents import CUES

        if sum(message.role == "assistant" for message in request.messages) == self._held:
            CUES.begun.set()
            await CUES.go.wait()
        return await self._model.complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


class TimelyModel(HeldModel):
    """A scripted model of which each answer takes a second."""

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        super().__init__(script, held=-1)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        from tests.data.corpus.agents import CUES

        CUES.clock.advance(1.0)
        return await super().complete(request)


class CachingModel(HeldModel):
    """A scripted model that reads from its cache what it has read before, for less."""

    def __init__(self, script: Script | Sequence[Reply]) -> None:
        super().__init__(script, held=-1)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        response = await super().complete(request)
        cached = sum(message.tokens for message in request.messages[:-1])
        asked = cached + request.messages[-1].tokens
        usage = Usage(
            model_calls=1,
            input_tokens=asked,
            output_tokens=7,
            cached_tokens=cached,
            cost_usd=0.0001 * (asked - 0.9 * cached),
        )
        return replace(response, usage=usage)


class Notes:
    """An executor of a user, which adds to the state, the log and the events."""

    name = "notes"
    reads: tuple[StateKey[Any], ...] = (NOTES,)
    reads_log = True

    def __init__(self, tired_after: int | None = None) -> None:
        self._tired_after = tired_after

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(NOTES, 1)
        await context.flush()
        notes = context.get(NOTES)
        if notes == self._tired_after:
            raise RuntimeError("too many notes")
        context.add_message(Message.user(f"note {notes}, of {len(context.log)} messages"))
        context.emit(CustomEvent(name="notes.taken", data={"notes": [notes], "länge": 1.5}))
        return signal


@dataclass
class OwnTurn:
    """An executor of a user in the place of the agent turn, which may park the run first."""

    parks: bool
    name: str = AGENT_TURN
    reads: tuple[StateKey[Any], ...] = (MADE,)
    reads_log: bool = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(MADE, 1)
        context.add_message(Message.assistant(f"turn {context.get(MADE)}"))
        if self.parks and context.get(MADE) == 1:
            return Parked()
        ending = "completed" if context.get(MADE) > 2 else "text"
        return TurnComplete(ending=ending, text="by hand")  # type: ignore[arg-type]


@dataclass(frozen=True)
class RecordedTool:
    """Answers what a recorded conversation has for a call."""

    spec: ToolSpec
    results: Mapping[tuple[str, str], str]
    """By the id of a call and its arguments."""

    async def run(self, arguments: str, context: ToolContext) -> str:
        text = self.results.get((context.call_id, arguments))
        if text is None:
            raise ToolError("nothing is recorded of this call")
        return text


def tools_of(messages: Sequence[Message]) -> list[RecordedTool]:
    """The tools that a conversation calls."""
    results: dict[str, dict[tuple[str, str], str]] = {}
    asked: dict[str, ToolCall] = {}
    for message in messages:
        for call in message.tool_calls:
            asked[call.id] = call
            results.setdefault(call.name, {})
        answered = asked.get(message.tool_call_id or "")
        if answered is not None:
            results[answered.name][answered.id, answered.arguments] = message.text
    return [RecordedTool(_spec(name), told) for name, told in sorted(results.items())]


def _spec(name: str) -> ToolSpec:
    reads = name.lower().startswith(("get", "read", "grep", "glob", "list", "search", "find"))
    return ToolSpec(
        name=name,
        description="recorded",
        parameters={"type": "object"},
        effect="read_only" if reads else "local_write",
        idempotent=reads,
    )


def endless(reply: Reply) -> Script:
    """The same answer, whatever was asked."""
    return lambda _messages: reply


def two_lookups() -> list[Reply]:
    """A run with a fenced round, one with several calls, and an end."""
    return [
        Reply.call("write", {"text": "a"}, said="First this."),
        Reply.calls([("read", {"text": "b"}), ("put", {"key": "k", "value": [1, 2.5]})]),
        done(),
    ]
