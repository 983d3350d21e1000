"""Endpoints that behave as no well-meaning server does, on this machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext

ANSWER = b'{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}'

Serve = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One request on a connection, and what is written in return.

    Attributes:
        head: The request line and headers.
        body: The request's body.
        number: How many requests came to the endpoint before this one.
    """

    def __init__(
        self,
        head: str,
        body: bytes,
        number: int,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.head = head
        self.body = body
        self.number = number
        self._reader, self._writer = streams

    async def write(self, *parts: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def answer(self, body: bytes = ANSWER, *headers: str, status: str = "200 OK") -> None:
        """Write a whole answer."""
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
        await self.write("\r\n".join(lines).encode(), body)

    async def until_left(self) -> None:
        """Wait until the other end closes the connection."""
        await self._reader.read()

    def hang_up(self) -> None:
        """Close the connection."""
        self._writer.close()


@asynccontextmanager
async def endpoint(
    serve: Serve, *, tls: SSLContext | None = None, reads_bodies: bool = True
) -> AsyncIterator[str]:
    """An endpoint whose answers are written by hand; yields its base URL.

    Args:
        serve: Called with each request, one connection's in their order.
        tls: Makes it one of HTTPS.
        reads_bodies: Reads a request's body before it is served.
    """
    requests = 0
    open_now: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        open_now[writer] = asyncio.current_task()
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
                body = await reader.readexactly(int(length or 0) if reads_bodies else 0)
                exchange = Exchange(head, body, requests, (reader, writer))
                requests += 1
                await serve(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            del open_now[writer]
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
    finally:
        server.close()
        served = [task for task in open_now.values() if task is not None]
        for writer in open_now:
            writer.close()
        await asyncio.gather(*served)
