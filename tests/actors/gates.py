"""Where tools of these tests wait; found by name, for their own modules travel by value."""

import asyncio

started: dict[str, asyncio.Event] = {}
"""A tool has begun to wait at the gate of this name."""

opened: dict[str, asyncio.Event] = {}
"""Tools that wait at the gate of this name may go on."""


def make(name: str) -> None:
    started[name], opened[name] = asyncio.Event(), asyncio.Event()


async def wait_at(name: str) -> None:
    started[name].set()
    await opened[name].wait()
