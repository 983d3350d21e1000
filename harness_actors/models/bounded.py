"""Reading answers that may be larger than anybody can use."""

from collections.abc import AsyncIterator

ANSWER_BYTES = 4 * 1024 * 1024
"""Of one answer, unpacked. The longest that models write are 1 MB; of this size, bytes that are
meant to can still make Python objects of 120 MB."""
STREAM_FACTOR = 32
"""Each token of a stream comes with some 300 bytes around it, which are not kept."""
REFUSAL_BYTES = 64 * 1024
"""What is read of the body of an error."""


class OutOfBoundsError(ValueError):
    """An answer is larger than allowed; says in what, and what is allowed."""


async def read_at_most(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """All bytes of an answer.

    Raises:
        OutOfBoundsError: There are more than `most`; the rest was not read.
    """
    parts, size = [], 0
    async for piece in pieces:
        size += len(piece)
        if size > most:
            raise too_large("the answer", most)
        parts.append(piece)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_start(pieces: AsyncIterator[bytes], most: int = REFUSAL_BYTES) -> bytes:
    """The first bytes of a body; whether there are more is not told."""
    parts, left = [], most
    async for piece in pieces:
        parts.append(piece[:left])
        left -= len(piece)
        if left <= 0:
            break
    return b"".join(parts)


def too_large(what: str, most: int) -> OutOfBoundsError:
    """The error for something that has more bytes than allowed."""
    return OutOfBoundsError(
        f"{what} has more than {most:,} bytes; OpenAIModel(max_answer_bytes=...) allows more"
    )
