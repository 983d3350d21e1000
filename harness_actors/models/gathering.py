"""Reading an answer that trickles: some of its pieces at a time."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp

AT_ONCE = 4
"""So many pieces are read as they come: a first word is waited for."""
GATHER_S = 0.05
"""How long the rest gathers in the socket: each piece by itself wakes the process for it."""


async def gathered(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of an answer in pieces, at most some twenty in a second after the first few."""
    content, read = answer.content, 0
    while piece := await content.readany():
        yield piece
        read += 1
        # None where the answer is complete.
        connection = answer.connection
        if read < AT_ONCE or connection is None or connection.transport is None:
            continue
        transport = connection.transport
        transport.pause_reading()
        try:
            await asyncio.sleep(GATHER_S)
        finally:
            transport.resume_reading()
