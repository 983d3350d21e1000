"""The append-only log of a conversation, and the rules that it keeps.

The rules are those of the providers: every tool call of an assistant message has
exactly one result, the results stand right behind it, and no result stands alone.
Call ids pair an assistant message with the results behind it and nothing else:
models do reuse an id later in the same conversation.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from harness_actors.messages import Message, ToolCall

UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the process that ran it died before it reported. "
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
        self.extend(messages)

    def append(self, message: Message) -> None:
        self._messages.append(message)
        self.tokens += message.tokens

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
        answered: list[str | None] = []
        for message in reversed(self._messages):
            if message.role == "tool":
                answered.append(message.tool_call_id)
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
        late results move behind their call, missing ones say that the outcome is
        unknown, and a call id given twice in one message gets a suffix.
    """
    taken = [False] * len(messages)
    fixed: list[Message] = []
    repairs = 0
    for position, message in enumerate(messages):
        if message.role == "tool":
            continue
        if message.role != "assistant" or not message.tool_calls:
            fixed.append(message)
            continue
        calls = unique_ids(message.tool_calls)
        renamed = calls != message.tool_calls
        repairs += renamed
        fixed.append(
            Message.assistant(message.body.get("content"), calls, tokens=message.tokens)
            if renamed
            else message
        )
        stop = _next_use(messages, position, {call.id for call in message.tool_calls})
        expected = position + 1
        for call, original in zip(calls, message.tool_calls, strict=True):
            found = next(
                (
                    at
                    for at in range(position + 1, stop)
                    if not taken[at] and messages[at].tool_call_id == original.id
                ),
                None,
            )
            if found is None:
                fixed.append(Message.tool_result(call.id, UNKNOWN_OUTCOME, is_error=True))
                repairs += 1
                continue
            taken[found] = True
            result = messages[found]
            in_the_block = all(m.role == "tool" for m in messages[expected : found + 1])
            repairs += not in_the_block
            fixed.append(
                result
                if call.id == original.id
                else Message.tool_result(call.id, result.text, is_error=result.is_error)
            )
    repairs += sum(m.role == "tool" and not taken[at] for at, m in enumerate(messages))
    return fixed, repairs


def unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one message with an id given twice, or an empty one, made unique.

    >>> [c.id for c in unique_ids([ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}")])]
    ['a', 'a#2']
    """
    used: set[str] = set()
    unique = []
    for position, call in enumerate(calls, start=1):
        wanted = call.id or f"call_{position}"
        name, copy = wanted, 1
        while name in used:
            copy += 1
            name = f"{wanted}#{copy}"
        used.add(name)
        unique.append(call if name == call.id else ToolCall(name, call.name, call.arguments))
    return tuple(unique)


def _next_use(messages: Sequence[Message], position: int, ids: set[str]) -> int:
    """Where the results of the message at `position` end at the latest: ids are reused."""
    for at in range(position + 1, len(messages)):
        message = messages[at]
        if message.role == "assistant" and any(call.id in ids for call in message.tool_calls):
            return at
    return len(messages)
