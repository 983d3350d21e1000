"""What happened in a run, as values: one class per kind of event.

Events are journaled with the change that they belong to and published once it is on
disk. What the messages of the log already say is not stored a second time:
`message_events` derives it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

from harness_actors.messages import Message, ToolCall, check_plain
from harness_actors.pickling import pickled_by_position

PREVIEW_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run."""

    type: ClassVar[str] = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    task_preview: str
    """The first 100 characters of the task."""
    stop_policy: str
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(Event):
    """A run goes on after its process died or its command was stopped."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParked(Event):
    """A run was put aside by its user; the same command takes it up again."""

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired(Event):
    """A call that was open got the result that its outcome is unknown."""

    kind: str
    call_id: str
    tool_name: str
    turn: int


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    turn: int
    max_turns: int


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCompleted(Event):
    """A model call was answered and its tools, if any, are done."""

    turn: int
    round: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    tool_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse(Event):
    """The model answered. Derived from its message."""

    text: str
    tool_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Event):
    """The model asked for a tool. Derived from its message."""

    call_id: str
    tool_name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned(Event):
    """A tool call got its result. Derived from the message."""

    call_id: str
    text: str
    is_error: bool
    traceback: str = ""
    """Of a call that failed in code of a user: where."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted(Event):
    turn: int
    rounds: int
    ending: str
    token_estimate: int
    """Tokens of the next request, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPressure(Event):
    turn: int
    tokens: int
    max_input_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationPrompt(Event):
    turn: int
    count: int
    max: int


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecided(Event):
    """What the stop decision came to, once per turn, after all its gates."""

    turn: int
    decision: str
    """`stop` or `continue`."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLost(Event):
    """The process that worked on the run died."""

    executor: str
    losses: int
    cause: str = ""
    """Why the process was killed; empty where it died by itself."""
    tools: tuple[str, ...] = ()
    """The tools that were called and had not answered; of several, the first ran first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted(Event):
    """The run is over. Always the last event of a run."""

    status: str
    reason: str
    message: str
    traceback: str = ""
    """Of a run that failed in code of a user: where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomEvent(Event):
    """An event of a user's own executor."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON values."""

    def __post_init__(self) -> None:
        check_plain(f"event {self.name!r}", self.data)


_KINDS: dict[str, type[Event]] = {}
for _kind in Event.__subclasses__():
    _kind.type = re.sub(r"(?<!^)(?=[A-Z])", "_", _kind.__name__).lower()
    _KINDS[_kind.type] = _kind


_TUPLES = {"tool_names", "tools"}
"""Fields that JSON knows as lists."""

DERIVED_EVENTS = (AgentResponse, ToolCalled, ToolReturned)
"""Those that `message_events` makes; a journal does not store them."""

EVENT_TYPES: frozenset[str] = frozenset(_KINDS)
"""The kinds of events that can be read back."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """An event with its place: whose it is, when, and where in the journal.

    Attributes:
        position: Journal position of the change that the event belongs to; several
            events of one change share it. 0 of one that is told before it is on disk.
        run_id: The run.
        at: Seconds since the epoch, when the change was committed, or the event was heard of.
        event: What happened.
    """

    position: int
    run_id: str
    at: float
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of an answer, told while the model says it.

    It is in no journal: it may be lost, and come to be void.

    Attributes:
        run_id: The run.
        turn: The turn, counted from 1.
        round: The round of the turn, counted from 1.
        attempt: How often the answer of this round was begun in the eyes of its reader. What
            was said in an earlier attempt is void: a process died, or the provider broke off.
        text: What was said; never empty.
    """

    type: ClassVar[str] = "text_delta"

    run_id: str
    turn: int
    round: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextGap:
    """Text is missing here: its reader was too slow, or a process died.

    The answer itself is not; it comes with the events of its round.

    Attributes:
        run_id: The run.
        missed: Characters; None where nobody knows how many.
    """

    type: ClassVar[str] = "text_gap"

    run_id: str
    missed: int | None


class TextSink(Protocol):
    """Takes the text of a run's answers, one answer at a time, and what follows from each.

    Never waits, never raises.
    """

    def begin(self, turn: int, round: int) -> None:
        """An answer begins; what was said of the same round before is void."""

    def say(self, text: str) -> None:
        """The answer goes on."""

    def end(self) -> None:
        """The answer is complete."""

    def announce(self, turn: int, round: int, event: Event) -> None:
        """Tell what happens in a round before it is on disk."""


def encode_event(event: Event | TextDelta | TextGap) -> dict[str, Any]:
    """The event as plain values, its kind under ``type``."""
    # Not `asdict`, which copies what nobody changes; the slots of an event are its fields.
    plain = {"type": event.type, **{name: getattr(event, name) for name in event.__slots__}}
    for name in ("traceback", "tools"):
        if not plain.get(name, True):
            del plain[name]
    return plain


def decode_event(plain: Mapping[str, Any]) -> Event:
    """What `encode_event` wrote. Fields that this version does not know are left out.

    Raises:
        KeyError: The kind of event is unknown.
    """
    kind = _KINDS[plain["type"]]
    known = {f.name for f in fields(kind)}
    given = {name: value for name, value in plain.items() if name in known}
    for name in given.keys() & _TUPLES:
        given[name] = tuple(given[name])
    return kind(**given)


def message_events(messages: Iterable[Message]) -> list[Event]:
    """The events that appended messages imply, in order, with their texts shortened."""
    events: list[Event] = []
    for message in messages:
        if message.role == "assistant":
            events.append(answer_event(message))
            events.extend(map(call_event, message.tool_calls))
        elif message.role == "tool":
            events.append(
                ToolReturned(
                    call_id=message.tool_call_id or "",
                    text=_preview(message.text),
                    is_error=message.is_error,
                    traceback=message.traceback,
                )
            )
    return events


def answer_event(message: Message) -> AgentResponse:
    """The event that an assistant message implies."""
    names = tuple(call.name for call in message.tool_calls)
    return AgentResponse(text=_preview(message.text), tool_names=names)


def call_event(call: ToolCall) -> ToolCalled:
    """The event that a call of an assistant message implies."""
    return ToolCalled(call_id=call.id, tool_name=call.name, arguments=_preview(call.arguments))


def _preview(text: str) -> str:
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "…"
