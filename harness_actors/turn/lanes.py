"""Work that is done side by side, so much of it at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class _RaisedError(Exception):
    """What a piece raised. An event loop is ended by a `KeyboardInterrupt` that a task raises,
    and whoever waits for that task would end it a second time."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


async def in_lanes(pieces: Sequence[Callable[[], Awaitable[T]]], lanes: int) -> list[T]:
    """Do pieces of work side by side; each is begun when those before it have begun.

    Args:
        pieces: Each does one when it is called.
        lanes: How many are done at once, at least 1.

    Returns:
        What each came to, in their order.

    Raises:
        BaseException: What the first piece raised that did; the others are cancelled, and have
            ended.
        CancelledError: The caller was cancelled; the same of all.
    """
    results: dict[int, T] = {}
    left = iter(enumerate(pieces))
    tasks = [asyncio.ensure_future(_lane(left, results)) for _ in range(min(lanes, len(pieces)))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _ended([task for task in tasks if not task.done()])
    errors = [task.exception() for task in tasks if not task.cancelled()]
    for error in errors:
        if isinstance(error, _RaisedError):
            raise error.error
    return [results[place] for place in range(len(pieces))]


async def _lane(
    left: Iterator[tuple[int, Callable[[], Awaitable[T]]]], results: dict[int, T]
) -> None:
    # The lanes share one iterator, so that a piece is begun by whichever is free.
    for place, piece in left:
        try:
            results[place] = await piece()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            raise _RaisedError(error) from error


async def _ended(tasks: "Sequence[asyncio.Future[None]]") -> None:
    if not tasks:
        return
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
