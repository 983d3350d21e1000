"""What stands in a rerun where the agent, its model and the time stood."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_actors.conversation import Conversation
from harness_actors.outputs import OutputType
from harness_actors.plan import ToolPolicy, View
from harness_actors.plan.plan import policies_from
from harness_actors.plan.shown import ANCHORING
from harness_actors.policies import Approvals, Hooks, ToolUsage
from harness_actors.policies.hooks import KINDS, HookKind
from harness_actors.ports import (
    ModelRequest,
    ModelResponse,
    Tool,
    ToolSpec,
)
from harness_actors.records import WorkspaceSpec
from harness_actors.replay.handed_on import HandedOn
from harness_actors.replay.old_records import tools_told
from harness_actors.replay.recorded_calls import (
    WORK_COMPLETE,
    RecordedAskingTool,
    RecordedDelegatingTool,
    RecordedOutput,
    RecordedTool,
    recorded_spec,
)
from harness_actors.replay.recording import Recording
from harness_actors.replay.stage import Stage
from harness_actors.state import (
    AGENT_TURN,
    OPEN_CALLS,
    PRESSURE,
    REQUEST_TOKENS,
    TOOL_USAGE,
    TURN_COUNT,
    observed_by,
)
from harness_actors.turn.approvals import APPROVALS
from harness_actors.turn.output_gate import OBSERVED as OBSERVED_OUTPUT
from harness_actors.turn.preparation import READ_ARTIFACT
from harness_actors.turn.texts import MESSAGE_TOKENS, part_tokens, spoken_in

PROMPT = "(the instructions of the agent are in its code, which a rerun does not open)"


ROUNDING_S = 1e-6
"""What sums of seconds may be off: time that is just over must not seem to be left."""


class RecordedClock:
    """Time stands still, but where the journal shows that a limit by time was over.

    Args:
        start: When the run was submitted, in seconds since the epoch.
    """

    def __init__(self, stage: Stage, recording: Recording) -> None:
        self._stage = stage
        self._start = recording.added_at
        self._config = recording.spec.config
        self._limits = self._config.limits
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
        return max(self._passed("working_time", self._limits.working_s), self._turn_passed())

    def _turn_passed(self) -> float:
        tape, limits = self._stage.tape, self._config.turn_limits
        if tape is None or limits is None or limits.time_s is None:
            return 0.0
        over = tape.turn_is_out_of_time(self._config.max_rounds_per_turn)
        return limits.time_s + ROUNDING_S if over else 0.0

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
class RecordedAgent:
    """An agent that does what the journal says."""

    model: RecordedModel
    tools: Sequence[Tool]
    instructions: str
    name: str = "recorded"
    hooks: Hooks = field(default_factory=Hooks)
    middleware: tuple[ToolUsage, ...] = ()
    approvals: Approvals | None = None
    output_type: OutputType | None = None

    @classmethod
    def of(cls, recording: Recording, stage: Stage) -> "RecordedAgent":
        handed_on = HandedOn.in_recording(recording)
        asking = {call.name for call, _ in handed_on.asked.values()}
        delegating = {call.name for call, _ in handed_on.delegated.values()} | recording.delegates
        tools: list[Tool] = [
            RecordedAskingTool(stage, spec)
            if spec.name in asking
            else RecordedDelegatingTool(stage, spec)
            if spec.name in delegating
            else RecordedTool(spec)
            for spec in tools_of(recording)
        ]
        prompt = PROMPT if overhead_tokens(recording) else ""
        return cls(
            RecordedModel(stage),
            tools,
            prompt,
            hooks=Hooks(**dict.fromkeys(_kinds_asked(recording), _never_asked)),
            middleware=(ToolUsage(),) if _counts_tools(recording) else (),
            # What it decides is on record, too.
            approvals=Approvals() if APPROVALS in _observed(recording) else None,
            output_type=RecordedOutput() if _has_output(recording) else None,
        )


@dataclass
class RecordedCounter:
    """Says of each text how many tokens the journal counted for it."""

    tokens: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, recording: Recording) -> "RecordedCounter":
        tokens: dict[str, int] = {}
        for message in recording.messages:
            # The first: that of a nudge is estimated, but counted where it is part of a task.
            borders = MESSAGE_TOKENS + part_tokens(message)
            tokens.setdefault("\n".join(spoken_in(message)), message.tokens - borders)
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
            log = Conversation(recording.log_before(change.position + 1))
            before = sum(
                write.value
                for earlier in recording.changes
                if earlier.position < change.position
                for write in earlier.delta.writes
                if write.key == REQUEST_TOKENS.name
            )
            plan = recording.plan_before(change.position)
            shown = log.tokens if plan is None else View(log, plan).tokens
            return max(0, int(requested + before) - shown)
    return 0


def tools_of(recording: Recording) -> list[ToolSpec]:
    """The agent's tools, as far as the journal shows them.

    All that a rerun needs to know of one is its name and whether it is idempotent, which
    decides what is written before it starts.
    """
    calls = {call.name: call for m in recording.messages for call in m.tool_calls}
    known: Collection[str] | None = recording.tools
    if known is None:
        known = tools_told(recording.messages)
    names = set(calls if known is None else known)
    if recording.spec.config.completion == "explicit":
        names.discard(WORK_COMPLETE)
    if recording.spec.config.artifacts is not None:
        names.discard(READ_ARTIFACT)
    fenced, policies = _not_idempotent(recording), _policies(recording)
    return [
        recorded_spec(name, idempotent=name not in fenced, policy=policies.get(name, ANCHORING))
        for name in sorted(names)
    ]


def _policies(recording: Recording) -> dict[str, ToolPolicy]:
    """What the results of its tools are worth later, as the first turn said that had no room."""
    for write in recording.writes_of(PRESSURE.name):
        if write.value is not None:
            return policies_from(write.value["policies"])
    return {}


def _has_output(recording: Recording) -> bool:
    """Whether the run was to come to a value, as far as the journal shows it."""
    if recording.spec.config.completion == "explicit":
        return recording.takes_output
    return OBSERVED_OUTPUT in _observed(recording)


def _kinds_asked(recording: Recording) -> list[HookKind]:
    """The hooks of the agent, as far as the journal shows that they were asked."""
    seen = _observed(recording)
    return [kind for kind in KINDS if kind in seen]


def _observed(recording: Recording) -> set[str]:
    """The kinds of what its turns observed."""
    writes = recording.writes_of(observed_by(AGENT_TURN))
    return {write.value["kind"] for write in writes if write.change == "append"}


async def _never_asked(event: object) -> None:
    """In place of hooks: what they said is on record."""
    raise NotImplementedError("a rerun asks no hook")


def _counts_tools(recording: Recording) -> bool:
    return any(recording.writes_of(TOOL_USAGE.name))


def _not_idempotent(recording: Recording) -> set[str]:
    return {
        call["tool_name"]
        for write in recording.writes_of(OPEN_CALLS.name)
        if write.change == "set"
        for call in write.value
        if not call["idempotent"]
    }


def leave_workspace(spec: WorkspaceSpec) -> Path:
    """In place of making a workspace: nothing works in it."""
    return Path(spec.path)


async def at_once(function: Any, *arguments: Any) -> Any:
    """In place of a pool of threads."""
    return function(*arguments)
