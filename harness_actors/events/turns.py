"""Events of a turn: its rounds, what the model says in them, and what its tools return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness_actors.events.event import Event
from harness_actors.pickling import pickled_by_position


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    type: ClassVar[str] = "turn_started"

    turn: int
    max_turns: int


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCompleted(Event):
    """A model call was answered and its tools, if any, are done."""

    type: ClassVar[str] = "round_completed"

    turn: int
    round: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    tool_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFellBack(Event):
    """A round of an agent with several models was not answered by the first of them alone.

    What the tries used is a part of the usage of their round, and of its run.
    """

    type: ClassVar[str] = "model_fell_back"

    turn: int
    round: int
    model: str
    """Who answered; empty where nobody did."""
    failed: tuple[Mapping[str, Any], ...] = ()
    """Those that were asked in this round and failed, in their order: `model`, `why` (``error``,
    ``refusal`` or ``overflow``), `problem`, and the usage as far as their providers told it. Empty
    where a round before had left the turn with the model that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse(Event):
    """The model answered. Derived from its message."""

    type: ClassVar[str] = "agent_response"

    text: str
    tool_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Event):
    """The model asked for a tool. Derived from its message."""

    type: ClassVar[str] = "tool_called"

    call_id: str
    tool_name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned(Event):
    """A tool call got its result. Derived from the message."""

    type: ClassVar[str] = "tool_returned"

    call_id: str
    text: str
    is_error: bool
    failure: str = ""
    """Of an error: what became of the call, see `Failure`; empty where an earlier version has
    recorded it."""
    traceback: str = ""
    """Where code of a user failed, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """A call tells how it goes on. It is told to whoever reads along, and in no journal."""

    type: ClassVar[str] = "tool_progress"

    call_id: str
    tool_name: str
    text: str


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted(Event):
    type: ClassVar[str] = "turn_completed"

    turn: int
    rounds: int
    ending: str
    token_estimate: int
    """Tokens of the next request, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallFound(Event):
    """The rounds of a run come to nothing: the model was told so, or the turn has ended by it."""

    type: ClassVar[str] = "stall_found"

    turn: int
    round: int
    kind: str
    """`repetition`, `alternation`, `no_news`, `failures`, `monologue` or, of a hook, `hook`."""
    rounds: int
    """How many show it; 1 of a hook."""
    what: str
    """The calls that it repeats, or what the hook says; empty where there are none."""
    text: str
    """It as a sentence, as the model was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted(Event):
    """Room was made in the window of the model: from here on it is shown less of the conversation.
    The log is as it was."""

    type: ClassVar[str] = "context_compacted"

    turn: int
    version: int
    """Of the plan by which the conversation is shown; they count up from 1."""
    tokens_before: int
    tokens_after: int
    window_tokens: int
    cleared: int
    """Messages in ranges of which results that can be had again are left out, in all."""
    externalized: int
    """The same of those in which what is long is shown in part."""
    dropped: int
    """The same of those that are named alone."""
    summarized: int = 0
    """The same of those of which a summary is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFailed(Event):
    """What a run no longer needs to see could not be summarized; it goes on all the same."""

    type: ClassVar[str] = "summary_failed"

    turn: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFailed(Event):
    """A strategy of the agent's own failed while room was made; that was done without it."""

    type: ClassVar[str] = "strategy_failed"

    turn: int
    strategy: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPressure(Event):
    type: ClassVar[str] = "context_pressure"

    turn: int
    tokens: int
    max_input_tokens: int
