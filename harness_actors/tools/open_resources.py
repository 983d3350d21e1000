"""The resources that are open in a process: opened once, given to many, closed together."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.tools.resources import Resource

logger = logging.getLogger(__name__)

CLOSE_WITHIN_S = 2.0
"""How long all of them together may take to be closed."""

InThread = Callable[..., Awaitable[Any]]


class Opened:
    """A resource that is being opened, or is open.

    Args:
        resource: The resource.
        in_thread: Runs it where it blocks.
    """

    def __init__(self, resource: Resource[Any], in_thread: InThread) -> None:
        self.users = 0
        """Who waits for it to be opened."""
        self._resource = resource
        self._in_thread = in_thread
        self._source: Any = None
        """The generator, where it is one."""
        self.opening = asyncio.ensure_future(self._open())

    async def close(self) -> None:
        """Let it close what it has opened."""
        if not self.opening.done():
            self.opening.cancel()
        await asyncio.wait((self.opening,))
        source, self._source = self._source, None
        if source is None:
            return
        if inspect.isasyncgen(source):
            more = await anext(source, _END) is not _END
            await source.aclose()
        else:
            more = await self._in_thread(next, source, _END) is not _END
        if more:
            raise ToolError(f"resource {self._resource.__name__!r} yields more than once")

    async def _open(self) -> Any:
        function = self._resource.function
        if inspect.isasyncgenfunction(function):
            made: Any = function()
        elif inspect.iscoroutinefunction(function):
            return await function()
        else:
            made = await self._in_thread(_begun, function)
        if inspect.isasyncgen(made):
            self._source, value = made, await anext(made, _END)
        elif inspect.isgenerator(made):
            self._source, value = made, await self._in_thread(next, made, _END)
        else:
            return await made if inspect.isawaitable(made) else made
        if value is _END:
            self._source = None
            raise ToolError(f"resource {self._resource.__name__!r} yields nothing")
        return value


class OpenResources:
    """Answers the port `ToolResources`, for one event loop."""

    def __init__(self) -> None:
        self._opened: dict[Resource[Any], Opened] = {}
        self._closed = False

    @property
    def count(self) -> int:
        """How many are open, or being opened."""
        return len(self._opened)

    async def get(self, resource: Any, in_thread: InThread) -> Any:
        if self._closed:
            raise ToolError(f"resource {resource.__name__!r} was closed with its process")
        opened = self._opened.get(resource)
        if opened is None:
            opened = self._opened[resource] = Opened(resource, in_thread)
        if opened.opening.done():
            return opened.opening.result()
        opened.users += 1
        try:
            return await asyncio.shield(opened.opening)
        except BaseException:
            # Whoever is stopped in the moment in which it has opened leaves it to the next.
            is_open = opened.opening.done() and _has_opened(opened.opening)
            last = opened.users == 1 or opened.opening.done()
            if last and not is_open and self._opened.get(resource) is opened:
                # The next call tries anew; and nobody waits any more for what may hang.
                del self._opened[resource]
                opened.opening.cancel()
            raise
        finally:
            opened.users -= 1

    async def close(self) -> None:
        """Close all, the newest first; returns after `CLOSE_WITHIN_S` in any case."""
        self._closed = True
        opened = list(self._opened.items())
        self._opened.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                while opened:
                    await _closed(*opened.pop())
        for resource, left in opened:
            left.opening.cancel()
            logger.warning("%r was not closed in time", resource)


def _has_opened(opening: "asyncio.Future[Any]") -> bool:
    return not opening.cancelled() and opening.exception() is None


async def _closed(resource: Resource[Any], opened: Opened) -> None:
    try:
        await opened.close()
    except Exception:
        # Code of a user, at a moment when nobody waits for anything any more.
        logger.warning("%r was not closed", resource, exc_info=True)


class _End:
    """A generator has nothing more."""


_END = _End()


def _begun(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except StopIteration as error:
        # No future can hold it.
        raise RuntimeError(f"StopIteration: {error}") from error
