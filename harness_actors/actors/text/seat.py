"""The stream actor's place in a cell: started on first use, and again when it dies."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Protocol

from harness_actors.actors.liveness import Liveness, until_gone
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.processes import Processes
from harness_actors.errors import HarnessError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

AGAIN_S = 1.0


class StreamsPeer(Protocol):
    """How the coordinator reaches the stream actor; raises as a `Peer` does."""

    async def hello(self) -> tuple[ProcessMark, ...]: ...
    async def watch(self) -> None: ...
    def kill(self) -> None: ...


PlaceStreams = Callable[[str], Awaitable[StreamsPeer]]
"""Begins to start a stream actor that is known under a name."""


class StreamSeat:
    """Keeps a stream actor alive from the moment that somebody reads text.

    Each has a name of its own, so that nobody posts to one and reads from another. Losing
    it costs text and nothing else: whatever goes wrong here is not told to any run.

    Args:
        place: Places it.
        started: Called with the process of each that serves.
        processes: Those of this machine.
    """

    def __init__(
        self, place: PlaceStreams, started: Callable[[ProcessMark], None], processes: Processes
    ) -> None:
        self._place = place
        self._started = started
        self._processes = processes
        self._name = ""
        self._peer: StreamsPeer | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._placed = asyncio.Event()

    async def name(self) -> str:
        """That of the newest one, which may be starting."""
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())
        await self._placed.wait()
        return self._name

    def close(self) -> None:
        """Kill it."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._peer is not None:
            self._peer.kill()

    async def _keep(self) -> None:
        while True:
            name = f"streams:{token_hex(8)}"
            try:
                self._peer = peer = await self._place(name)
                self._name = name
                self._placed.set()
                marks = await peer.hello()
            except (HarnessError, UnreachableError) as error:
                logger.warning("the stream actor did not come up: %s", error)
                # Whoever asks for its name is better off without text than waiting.
                self._placed.set()
                await asyncio.sleep(AGAIN_S)
                continue
            for mark in marks:
                self._started(mark)
            await until_gone(peer, marks, Liveness(), self._processes)
            logger.warning("the stream actor was lost; text of runs in progress may be")
