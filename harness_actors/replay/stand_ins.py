"""What stands in a rerun where the agent, its tools and the time stood."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.messages import Message
from harness_actors.ports import (
    AskedQuestion,
    AskingTool,
    ModelRequest,
    ModelResponse,
    Tool,
    ToolContext,
    ToolSpec,
)
from harness_actors.records import WorkspaceSpec
from harness_actors.replay.recording import Recording
from harness_actors.replay.tape import Tape
from harness_actors.state import OPEN_CALLS, QUESTIONS, REQUEST_TOKENS, TURN_COUNT
from harness_actors.turn.texts import MESSAGE_TOKENS, PART_TOKENS

WORK_COMPLETE = "work_complete"
"""The harness's own tool, which a rerun has like any run."""

PROMPT = "(the instructions of the agent are in its code, which a rerun does not open)"


class Stage:
    """The visit in progress, as far as stand-ins need to know of it.

    Attributes:
        tape: What the journal answers; None outside the agent turn.
    """

    def __init__(self) -> None:
        self.tape: Tape | None = None

    def open_tape(self) -> Tape:
        assert self.tape is not None, "only the agent turn asks"
        return self.tape


class RecordedClock:
    """Time stands still, but where the journal shows that a limit by time was over.

    Args:
        start: When the run was submitted, in seconds since the epoch.
    """

    def __init__(self, stage: Stage, recording: Recording) -> None:
        self._stage = stage
        self._start = recording.added_at
        self._limits = recording.spec.config.limits
        self._turn_begins = False

    def turn_begins(self) -> None:
        """The next reading is the one from which working time counts."""
        self._turn_begins = True

    def now(self) -> float:
        return self._start + self._passed("time", self._limits.time_s)

    def monotonic(self) -> float:
        if self._turn_begins:
            self._turn_begins = False
            return 0.0
        return self._passed("working_time", self._limits.working_s)

    def _passed(self, kind: str, limit_s: float | None) -> float:
        tape = self._stage.tape
        left = None if tape is None else tape.seconds_left()
        if tape is None or left is None or limit_s is None or tape.limit_by_time() != kind:
            return 0.0
        return limit_s - left

    async def sleep(self, seconds: float) -> None:
        return


@dataclass(frozen=True)
class RecordedModel:
    """Says what the journal has."""

    stage: Stage
    name: str = "recorded"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return await self.stage.open_tape().answer(self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


@dataclass(frozen=True)
class RecordedTool:
    """Answers with the results that the journal has; nothing is done."""

    stage: Stage
    spec: ToolSpec

    async def run(self, arguments: str, context: ToolContext) -> str:
        return await self.stage.open_tape().result(context.call_id, self.spec.name)


@dataclass(frozen=True)
class RecordedAskingTool(AskingTool):
    """Asks what the journal has, and refuses what the journal has refused."""

    known: ToolSpec
    asked: Mapping[str, AskedQuestion]
    refused: Mapping[str, str]

    @property
    def spec(self) -> ToolSpec:
        return self.known

    def question(self, arguments: str) -> AskedQuestion:
        if arguments not in self.asked:
            raise ToolError(self.refused.get(arguments, ""))
        return self.asked[arguments]


@dataclass(frozen=True)
class RecordedAgent:
    """An agent that does what the journal says."""

    model: RecordedModel
    tools: Sequence[Tool]
    instructions: str
    name: str = "recorded"

    @classmethod
    def of(cls, recording: Recording, stage: Stage) -> "RecordedAgent":
        asked, refused = _asked_in(recording)
        tools: list[Tool] = [
            RecordedAskingTool(spec, asked[spec.name], refused)
            if spec.name in asked
            else RecordedTool(stage, spec)
            for spec in tools_of(recording)
        ]
        prompt = PROMPT if overhead_tokens(recording) else ""
        return cls(RecordedModel(stage), tools, prompt)


@dataclass
class RecordedCounter:
    """Says of each text how many tokens the journal counted for it."""

    tokens: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, recording: Recording) -> "RecordedCounter":
        tokens: dict[str, int] = {}
        for message in recording.messages:
            # The first: that of a nudge is estimated, but counted where it is part of a task.
            tokens.setdefault(_counted_text(message), message.tokens - _borders(message))
        # The prompt stands for all that every request holds; the tools count nothing then.
        tokens[PROMPT] = overhead_tokens(recording) - MESSAGE_TOKENS
        return cls(tokens)

    async def count(self, text: str) -> int:
        return self.tokens.get(text, 0)


def overhead_tokens(recording: Recording) -> int:
    """Tokens of the agent's prompt and tools, which the first turn added to those of the log."""
    for change in recording.changes:
        if any(write.key == TURN_COUNT.name for write in change.delta.writes):
            requested = sum(w.value for w in change.delta.writes if w.key == REQUEST_TOKENS.name)
            log = recording.log_before(change.position + 1)
            before = sum(
                write.value
                for earlier in recording.changes
                if earlier.position < change.position
                for write in earlier.delta.writes
                if write.key == REQUEST_TOKENS.name
            )
            return max(0, int(requested + before) - sum(message.tokens for message in log))
    return 0


def tools_of(recording: Recording) -> list[ToolSpec]:
    """The agent's tools, as far as the log shows them.

    All that a rerun needs to know of one is its name and whether it is idempotent, which
    decides what is written before it starts.
    """
    calls = {call.name: call for m in recording.messages for call in m.tool_calls}
    names = _names_told(recording.messages)
    if names is None:
        names = set(calls)
    if recording.spec.config.completion == "explicit":
        names.discard(WORK_COMPLETE)
    fenced = _not_idempotent(recording)
    return [
        ToolSpec(
            name=name,
            description="recorded",
            parameters={"type": "object"},
            idempotent=name not in fenced,
        )
        for name in sorted(names)
    ]


def _names_told(messages: Iterable[Message]) -> set[str] | None:
    """The tools that a model was told of when it asked for one that there is not."""
    asked: dict[str, str] = {}
    for message in messages:
        asked.update((call.id, call.name) for call in message.tool_calls)
        name = asked.get(message.tool_call_id or "")
        opening = f"There is no tool {name!r}. Tools: "
        if message.role == "tool" and message.is_error and message.text.startswith(opening):
            told = message.text.removeprefix(opening).removesuffix(".")
            return set() if told == "none" else set(told.split(", "))
    return None


def _not_idempotent(recording: Recording) -> set[str]:
    return {
        call["tool_name"]
        for change in recording.changes
        for write in change.delta.writes
        if write.key == OPEN_CALLS.name and write.change == "set"
        for call in write.value
        if not call["idempotent"]
    }


def _asked_in(
    recording: Recording,
) -> tuple[Mapping[str, Mapping[str, AskedQuestion]], Mapping[str, str]]:
    """What was asked, by the name of the tool and the arguments of its call; and what those were
    told that failed, by their arguments."""
    calls = {call.id: call for m in recording.messages for call in m.tool_calls}
    asked: dict[str, dict[str, AskedQuestion]] = {}
    for change in recording.changes:
        for write in change.delta.writes:
            if write.key != QUESTIONS.name:
                continue
            questions = QUESTIONS.decode(write.value)
            for question in () if questions is None else questions.asked:
                call = calls[question.call_id]
                asked.setdefault(call.name, {})[call.arguments] = AskedQuestion(
                    text=question.text, options=question.options, why=question.why
                )
    refused = {
        calls[message.tool_call_id].arguments: message.text
        for message in recording.messages
        if message.is_error and message.tool_call_id in calls
    }
    return asked, refused


def _counted_text(message: Message) -> str:
    texts = [message.text]
    for call in message.tool_calls:
        texts += (call.name, call.arguments)
    return "\n".join(texts)


def _borders(message: Message) -> int:
    content = message.body.get("content")
    others = sum(p.get("type") != "text" for p in content) if isinstance(content, list) else 0
    return MESSAGE_TOKENS + PART_TOKENS * others


def leave_workspace(spec: WorkspaceSpec) -> Path:
    """In place of making a workspace: nothing works in it."""
    return Path(spec.path)


async def at_once(function: Any, *arguments: Any) -> Any:
    """In place of a pool of threads."""
    return function(*arguments)
