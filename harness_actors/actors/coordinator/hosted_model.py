"""The embedded model of a cell, for the runs that ask it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from harness_actors.actors.coordinator.cell_programs import Programs
from harness_actors.actors.coordinator.roster import Seats
from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.kinds import EMBEDDED_MODEL
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import HarnessError
from harness_actors.records import RunSpec

logger = logging.getLogger(__name__)

AGAIN_S = 5.0


class HostedModel:
    """Has it serve when a run needs it, and tells the programs of its cell where it is."""

    def __init__(self, seats: Seats, programs: Programs) -> None:
        self._seats = seats
        self._programs = programs
        self._waiting: asyncio.Future[None] | None = None

    async def serve(self, specs: Sequence[RunSpec]) -> None:
        """Return when it serves, if one of these runs asks it.

        Raises:
            HarnessError: It does not start.
        """
        if not any(EMBEDDED_MODEL_URL in spec.keys for spec in specs):
            return
        if address := await self._seats.serving(Slot(EMBEDDED_MODEL)):
            self._programs.add_secrets({EMBEDDED_MODEL_URL: f"http://{address}/v1"})

    async def serve_or_wait(
        self, specs: Sequence[RunSpec], then: Callable[[], Awaitable[None]]
    ) -> None:
        """The same for runs of an earlier term: where it does not start they wait until `then`."""
        try:
            await self.serve(specs)
        except HarnessError as error:
            logger.error("runs wait for the embedded model: %s", error)
            self._waiting = asyncio.ensure_future(self._wait(specs, then))

    async def _wait(self, specs: Sequence[RunSpec], then: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(AGAIN_S)
        await self.serve_or_wait(specs, then)
        await then()

    def close(self) -> None:
        """Wait no longer."""
        if self._waiting is not None:
            self._waiting.cancel()
