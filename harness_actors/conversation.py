"""The append-only log of a conversation, and the rules that it keeps.

The rules are those of the providers: every tool call of an assistant message has
exactly one result, the results stand right after it, and no result stands alone.
Call ids pair an assistant message with the results after it and nothing else:
models do reuse an id later in the same conversation.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from harness_actors.messages import NO_FACTS, Message, ToolCall

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: it was cut off before it could report. "
    "It may have happened in full, in part or not at all. Look before you repeat it."
)


class Conversation(Sequence[Message]):
    """The messages of a conversation, oldest first. They are only ever appended.

    A message is known by its position, which never changes.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self.tokens = 0
        """The sum of the messages' tokens."""
        self.size_bytes = 0
        """The sum of their bytes."""
        self.extend(messages)

    def append(self, message: Message) -> None:
        if message.facts is not NO_FACTS:
            message = message.without_facts()
        self._messages.append(message)
        self.tokens += message.tokens
        self.size_bytes += len(message.encoded)

    def extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.append(message)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the newest assistant message that have no result yet.

        Only the end of the log is read, so this costs the same in a long one.
        """
        answered: set[str | None] = set()
        for message in reversed(self._messages):
            if message.role == "tool":
                answered.add(message.tool_call_id)
            elif message.role == "assistant":
                return tuple(call for call in message.tool_calls if call.id not in answered)
            else:
                break
        return ()


def repaired(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """Restore the rules of the log in a conversation that came from elsewhere.

    Args:
        messages: A conversation of any origin, oldest first.

    Returns:
        The messages in an order and number that providers accept, and how many
        repairs that took: results without a call and second results are left out,
        late results move after their call, missing ones say that the outcome is
        unknown, and a call id given twice in one message gets a suffix.
    """
    answers, repairs = _answers(messages)
    fixed: list[Message] = []
    for position, message in enumerate(messages):
        if message.role == "tool":
            continue
        calls = message.tool_calls if message.role == "assistant" else ()
        unique = unique_ids(calls)
        if unique != calls:
            repairs += 1
            message = Message.assistant(message.body.get("content"), unique, tokens=message.tokens)
        fixed.append(message)
        names = {
            at: call.id
            for place, call in enumerate(unique)
            if (at := answers.get((position, place))) is not None
        }
        fixed += [_named(messages[at], names[at]) for at in sorted(names)]
        end = _end_of_block(messages, position) if names else position
        repairs += sum(at >= end for at in names)
        answered = set(names.values())
        missing = [call.id for call in unique if call.id not in answered]
        fixed += [Message.tool_result(name, UNKNOWN_OUTCOME, failure="unknown") for name in missing]
        repairs += len(missing)
    return fixed, repairs


def unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one message with an id given twice, or an empty one, made unique.

    >>> [c.id for c in unique_ids([ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}")])]
    ['a', 'a#2']
    """
    used: set[str] = set()
    # Each goes on where the last of its id has stopped: thousands of one id are counted once.
    copies: dict[str, int] = {}
    unique = []
    for position, call in enumerate(calls, start=1):
        name = wanted = call.id or f"call_{position}"
        while name in used:
            copies[wanted] = copies.get(wanted, 1) + 1
            name = f"{wanted}#{copies[wanted]}"
        used.add(name)
        unique.append(call if name == call.id else ToolCall(name, call.name, call.arguments))
    return tuple(unique)


def _answers(messages: Sequence[Message]) -> tuple[dict[tuple[int, int], int], int]:
    """Pair results with calls; ids are reused, so each goes to the newest call before it.

    Returns:
        The position of the result of each call, which is known by the position of its
        message and its place there; and how many results belong to no call.
    """
    answers: dict[tuple[int, int], int] = {}
    waiting: dict[str | None, deque[tuple[int, int]]] = {}
    orphans = 0
    for position, message in enumerate(messages):
        if message.role == "assistant":
            calls = message.tool_calls
            waiting.update((call.id, deque()) for call in calls)
            for place, call in enumerate(calls):
                waiting[call.id].append((position, place))
        elif message.role == "tool":
            if waiting.get(message.tool_call_id):
                answers[waiting[message.tool_call_id].popleft()] = position
            else:
                orphans += 1
    return answers, orphans


def _end_of_block(messages: Sequence[Message], position: int) -> int:
    """Where the results right after the message at `position` end."""
    end = position + 1
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _named(result: Message, call_id: str) -> Message:
    if result.tool_call_id == call_id:
        return result
    return Message.tool_result(
        call_id,
        result.text,
        is_error=result.is_error,
        failure=result.failure,
        images=result.images,
    )
