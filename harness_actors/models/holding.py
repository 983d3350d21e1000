"""Requests by which a provider is to hold its model to a form, and what it may say to them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Protocol

from harness_actors.errors import ModelSetupError
from harness_actors.models.body import RequestBody
from harness_actors.ports import ModelResponse

REFUSING_STATUSES = (400, 422)
"""Of a provider that does not take a request as it is."""

Pieces = AsyncGenerator[str | ModelResponse]


class Encode(Protocol):
    """Makes the body of a request."""

    def __call__(self, *, strict: bool = False) -> RequestBody: ...


async def complete_held(
    answer: Callable[[RequestBody], Awaitable[ModelResponse]],
    encode: Encode,
    note_refused: Callable[[], None],
) -> ModelResponse:
    """Ask with the form; and without it a provider that does not take such a request.

    Args:
        answer: Asks.
        encode: Makes the request.
        note_refused: Called when it has answered without the form alone.

    Raises:
        ModelError: As what asks.
    """
    try:
        return await answer(encode(strict=True))
    except ModelSetupError as error:
        _check_refused(error)
    response = await answer(encode())
    note_refused()
    return response


async def stream_held(
    answer: Callable[[RequestBody], Pieces], encode: Encode, note_refused: Callable[[], None]
) -> Pieces:
    """The same for an answer in pieces: what was said cannot be taken back."""
    begun = False
    try:
        async with aclosing(answer(encode(strict=True))) as pieces:
            async for piece in pieces:
                begun = True
                yield piece
        return
    except ModelSetupError as error:
        if begun:
            raise
        _check_refused(error)
    async with aclosing(answer(encode())) as pieces:
        async for piece in pieces:
            yield piece
    note_refused()


def _check_refused(error: ModelSetupError) -> None:
    """Raise an error that has nothing to do with a form."""
    # Each provider says it in words of its own; of another fault it complains a second time.
    if error.status not in REFUSING_STATUSES:
        raise error
