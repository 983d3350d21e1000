"""The embedded model's place in a cell: a host of its own, started on first use."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from harness_actors.actors.liveness import Liveness, until_gone
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.processes import Processes, mark_of_this_process
from harness_actors.errors import HarnessError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

EMBEDDED_MODEL_URL = "HARNESS_EMBEDDED_MODEL_URL"
"""The key by which a run says that its model is the embedded one. Its value is where the
cell's server is."""


class EmbeddedModelHost:
    """Serves the embedded model to the runs of its cell.

    Args:
        port: Where to listen on this machine; the same after a death, so that whoever
            asks need not be told.
    """

    def __init__(self, port: int) -> None:
        from harness_actors.models import LocalServer

        self._server = LocalServer(port=port)

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (mark_of_this_process("embedded_model"),)

    async def start(self) -> str:
        """Load the model.

        Returns:
            The address to ask it at.

        Raises:
            ModelSetupError: It is not installed; says how to get it.
        """
        return await asyncio.to_thread(self._server.start)

    async def watch(self) -> None:
        """Never returns: the call fails when the process of this actor dies."""
        await asyncio.Event().wait()


class EmbeddedModelPeer(Protocol):
    """How the coordinator reaches the host; raises as a `Peer` does."""

    async def hello(self) -> tuple[ProcessMark, ...]: ...
    async def start(self) -> str: ...
    async def watch(self) -> None: ...
    def kill(self) -> None: ...


class EmbeddedModelSeat:
    """Keeps the host alive from the moment that a run needs it.

    Args:
        place: Begins to start a host that listens on a port.
        started: Called with the process of each host that serves.
        processes: Those of this machine.
    """

    def __init__(
        self,
        place: Callable[[int], Awaitable[EmbeddedModelPeer]],
        started: Callable[[ProcessMark], None],
        processes: Processes,
    ) -> None:
        self._place = place
        self._started = started
        self._processes = processes
        self._port = 0
        self._peer: EmbeddedModelPeer | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._url: asyncio.Future[str] | None = None

    async def url(self) -> str:
        """Where the model is served; waits until it is.

        Raises:
            HarnessError: It cannot be started.
        """
        if self._url is None:
            loop = asyncio.get_running_loop()
            self._url = loop.create_future()
            self._port = _free_port()
            self._keeping = loop.create_task(self._keep(self._url))
        return await asyncio.shield(self._url)

    def close(self) -> None:
        """Kill the host."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._peer is not None:
            self._peer.kill()

    async def _keep(self, first: asyncio.Future[str]) -> None:
        while True:
            try:
                self._peer = peer = await self._place(self._port)
                marks = await peer.hello()
                for mark in marks:
                    self._started(mark)
                url = await peer.start()
            except (HarnessError, UnreachableError) as error:
                if not first.done():
                    first.set_exception(error)
                    self._url = None
                    return
                logger.warning("the embedded model did not come back: %s", error)
                await asyncio.sleep(1.0)
                continue
            if not first.done():
                first.set_result(url)
            await until_gone(peer, marks, Liveness(), self._processes)
            logger.warning("the embedded model in process %d was lost", marks[0].pid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
