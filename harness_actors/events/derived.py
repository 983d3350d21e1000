"""The events that the messages of the log imply, which no journal stores a second time."""

from collections.abc import Iterable

from harness_actors.events.event import Event
from harness_actors.events.turns import AgentResponse, ToolCalled, ToolReturned
from harness_actors.messages import Message, ToolCall

PREVIEW_CHARS = 500

DERIVED_EVENTS = (AgentResponse, ToolCalled, ToolReturned)
"""Those that `message_events` makes; a journal does not store them."""


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
                    text=preview(message.text),
                    is_error=message.is_error,
                    failure=message.failure or "",
                    traceback=message.facts.traceback,
                )
            )
    return events


def answer_event(message: Message) -> AgentResponse:
    """The event that an assistant message implies."""
    names = tuple(call.name for call in message.tool_calls)
    return AgentResponse(text=preview(message.text), tool_names=names)


def call_event(call: ToolCall) -> ToolCalled:
    """The event that a call of an assistant message implies."""
    return ToolCalled(call_id=call.id, tool_name=call.name, arguments=preview(call.arguments))


def preview(text: str) -> str:
    """As much of a text as an event tells."""
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "…"
