"""Texts fit for a conversation: valid Unicode, bounded, and counted once."""

from collections.abc import Sequence
from dataclasses import replace

from harness_actors.messages import Message
from harness_actors.ports import TokenCounter

RESULT_CHARS = 100_000
"""Longest tool result, in characters; of a longer one, head and tail are kept."""
ERROR_CHARS = 4_000
"""Longest text of an exception that a tool raised, in characters."""

MESSAGE_TOKENS = 4
"""What providers add to each message for its role and its borders."""
PART_TOKENS = 85
"""A part of a message that is not a text, such as an image: the least that providers count."""


def well_formed(text: str) -> str:
    """The text with what is not valid Unicode replaced: file names hold lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def shortened(text: str, limit: int = RESULT_CHARS) -> str:
    """The text with its middle left out where it is longer than `limit` characters.

    >>> shortened("abcdefghij", 4)
    'ab\\n[… 6 of 10 characters left out …]\\nij'
    """
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    note = f"\n[… {len(text) - limit} of {len(text)} characters left out …]\n"
    return text[:head] + note + text[len(text) - tail :]


async def tokens_of(texts: Sequence[str], counter: TokenCounter) -> int:
    """The tokens that a message of these texts adds to a request."""
    return await counter.count("\n".join(texts)) + MESSAGE_TOKENS


async def counted(message: Message, counter: TokenCounter) -> Message:
    """The message with the tokens that it adds to a request."""
    tokens = await tokens_of(spoken_in(message), counter) + part_tokens(message)
    return replace(message, tokens=tokens)


def spoken_in(message: Message) -> list[str]:
    """The texts of a message that count."""
    return [message.text, *(part for c in message.tool_calls for part in (c.name, c.arguments))]


def part_tokens(message: Message) -> int:
    """What those parts of a message count that are no texts."""
    content = message.body.get("content")
    others = sum(part.get("type") != "text" for part in content) if isinstance(content, list) else 0
    return PART_TOKENS * others
