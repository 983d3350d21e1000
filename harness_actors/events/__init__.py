"""What happened in a run, as values: one class per kind of event, by subsystem.

Events are journaled with the change that they belong to and published once it is on
disk. What the messages of the log already say is not stored a second time:
`message_events` derives it.
"""

from harness_actors.events.custom import CustomEvent
from harness_actors.events.derived import (
    DERIVED_EVENTS,
    PREVIEW_CHARS,
    answer_event,
    call_event,
    message_events,
    preview,
)
from harness_actors.events.event import Event, RunEvent
from harness_actors.events.gates import HookFailed, ToolsCounted
from harness_actors.events.registry import (
    EVENT_TYPES,
    KINDS,
    TOLD_EVENTS,
    decode_event,
    encode_event,
)
from harness_actors.events.runs import (
    ExecutorLost,
    InputAwaited,
    QuestionAnswered,
    Repaired,
    RunCompleted,
    RunParked,
    RunResumed,
    RunStarted,
)
from harness_actors.events.stops import ContinuationPrompt, StopDecided
from harness_actors.events.texts import TextDelta, TextGap, TextSink
from harness_actors.events.turns import (
    AgentResponse,
    ContextPressure,
    RoundCompleted,
    ToolCalled,
    ToolProgress,
    ToolReturned,
    TurnCompleted,
    TurnStarted,
)

__all__ = [
    "DERIVED_EVENTS",
    "EVENT_TYPES",
    "KINDS",
    "PREVIEW_CHARS",
    "TOLD_EVENTS",
    "AgentResponse",
    "ContextPressure",
    "ContinuationPrompt",
    "CustomEvent",
    "Event",
    "ExecutorLost",
    "HookFailed",
    "InputAwaited",
    "QuestionAnswered",
    "Repaired",
    "RoundCompleted",
    "RunCompleted",
    "RunEvent",
    "RunParked",
    "RunResumed",
    "RunStarted",
    "StopDecided",
    "TextDelta",
    "TextGap",
    "TextSink",
    "ToolCalled",
    "ToolProgress",
    "ToolReturned",
    "ToolsCounted",
    "TurnCompleted",
    "TurnStarted",
    "answer_event",
    "call_event",
    "decode_event",
    "encode_event",
    "message_events",
    "preview",
]
