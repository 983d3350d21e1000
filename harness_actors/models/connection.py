"""One model's client: made with the first call, closed with the loop at the latest."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import TYPE_CHECKING

from harness_actors.models.failures import Endpoint

if TYPE_CHECKING:
    from harness_actors.models.client import WireClient


class Connection:
    """Keeps the client of one model in this process, for one event loop at a time.

    Args:
        timeout_s: As `WireClient`.
        max_connections: As `WireClient`.
        most_bytes: As `WireClient`.
    """

    def __init__(self, *, timeout_s: float, max_connections: int | None, most_bytes: int) -> None:
        self._timeout_s = timeout_s
        self._max_connections = max_connections
        self._most_bytes = most_bytes
        self._client: WireClient | None = None
        self._life: AsyncGenerator[WireClient] | None = None
        self._let_go: weakref.finalize[..., Connection] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def client(self, endpoint: Endpoint) -> "WireClient":
        """The client for an endpoint; a new one where the loop or the key is another."""
        loop = asyncio.get_running_loop()
        if (client := self._usable(endpoint, loop)) is not None:
            return client
        # The client takes a second to import, in which the loop's other calls go on.
        module = await asyncio.to_thread(import_module, "harness_actors.models.client")
        if (client := self._usable(endpoint, loop)) is not None:
            return client
        opened: WireClient = module.WireClient(
            endpoint,
            timeout_s=self._timeout_s,
            max_connections=self._max_connections,
            most_bytes=self._most_bytes,
        )
        if self._let_go is not None:
            self._let_go()
        self._client, self._life, self._loop = opened, _lived(opened), loop
        # A model may end in a cycle with the frames of an error, and what is collected with
        # a cycle is not closed in time; this holds the client, so it is never part of one.
        self._let_go = weakref.finalize(self, _let_go, self._life, loop)
        self._let_go.atexit = False
        return await anext(self._life)

    async def close(self) -> None:
        """Close it; the next call opens another."""
        life, self._life, self._client = self._life, None, None
        if life is not None and self._loop is asyncio.get_running_loop():
            if self._let_go is not None:
                self._let_go.detach()
            await life.aclose()

    def _usable(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> "WireClient | None":
        client = self._client
        return client if client and self._loop is loop and client.endpoint == endpoint else None

    def __reduce__(self) -> tuple[object, ...]:
        # Connections stay where they are; a pickled model opens its own.
        return _unopened, (self._timeout_s, self._max_connections, self._most_bytes)


def _let_go(life: "AsyncGenerator[WireClient]", loop: asyncio.AbstractEventLoop) -> None:
    """Close the client of a model that is gone, where it lived."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(_closed(life)))


async def _closed(life: "AsyncGenerator[WireClient]") -> None:
    await life.aclose()


def _unopened(timeout_s: float, max_connections: int | None, most_bytes: int) -> Connection:
    return Connection(timeout_s=timeout_s, max_connections=max_connections, most_bytes=most_bytes)


async def _lived(client: "WireClient") -> AsyncGenerator["WireClient"]:
    # A generator, because a loop closes those that are left when it ends: so connections
    # are closed in time even where nobody calls `close`.
    try:
        yield client
    finally:
        await client.close()
