"""The simulated runtime: the shipped actors in one process, on a time of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_actors.actors.doubt import SignsOfLife, until_dead
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.runtime import Happened, StopMode, TextCursor, Texts
from harness_actors.actors.simulated.cell import CellParts, SimulatedCoordinator, SimulatedPeer
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.text.streams import POLL_S
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.records import RunHeading, RunSpec

RETURN_DEADLINE_S = 90.0


class SimulatedRuntime:
    """Answers the `Runtime` port for a simulated driver.

    When the coordinator dies, its next incarnation is asked; when it says nothing, it is
    killed.
    """

    def __init__(self, ray: SimulatedRay, coordinator: SimulatedActor) -> None:
        self._ray = ray
        self.coordinator = coordinator
        self._secrets: dict[str, str] = {}
        self._budget_usd: float | None = None
        self._attached = False
        """The incarnation that was there last has both."""
        self._watching = asyncio.ensure_future(self._watch())

    @classmethod
    async def open(
        cls,
        ray: SimulatedRay,
        parts: CellParts,
        command: str,
        started: Callable[[SimulatedActor], None] = lambda _: None,
    ) -> "SimulatedRuntime":
        """Start a cell for a journal.

        Args:
            ray: Where.
            parts: What it is made of.
            command: Name of the command that submits the runs.
            started: Told of the coordinator's actor, at once: who starts it may die before
                it serves.

        Raises:
            StoreError: The journal cannot be served.
        """

        def make(_process: SimulatedProcess) -> SimulatedCoordinator:
            return SimulatedCoordinator(ray, parts, command, actor)

        actor = ray.start("coordinator", make, owner=None, restarts=True)
        started(actor)
        runtime = cls(ray, actor)
        await runtime._call("position")
        return runtime

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        self._secrets.update(secrets)
        await self._call("submit", specs, code, secrets)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self._secrets.update(secrets)
        await self._call("resume", run_ids, secrets)

    async def happened(self, cursor: int, *, messages: bool = False) -> Happened:
        happened: Happened = await self._call("happened", cursor, messages)
        return happened

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        await self._call("subscribe", run_ids)

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        # A simulated cell has no stream actor: nothing comes, after a while.
        await asyncio.sleep(POLL_S)
        return Texts(cursor=cursor)

    async def allow(self, budget_usd: float | None) -> None:
        self._budget_usd = budget_usd
        await self._call("allow", budget_usd)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> None:
        await self._call("stop", run_ids, mode)

    async def position(self) -> int:
        return int(await self._call("position"))

    async def headings(self) -> list[RunHeading]:
        headings: list[RunHeading] = await self._call("headings")
        return headings

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        events: tuple[RunEvent, ...] = await self._call("events", run_id)
        return events

    async def conversation(self, conversation_id: str) -> list[Message]:
        messages: list[Message] = await self._call("conversation", conversation_id)
        return messages

    async def close(self) -> None:
        self._watching.cancel()
        try:
            async with asyncio.timeout(10):
                await self._ray.network.call(self.coordinator, "call", "close")
        except (HarnessError, UnreachableError, TimeoutError):
            pass  # it is killed below in any case, and the journal holds what is committed
        self._ray.kill(self.coordinator)

    async def _call(self, method: str, *arguments: Any) -> Any:
        """One call of the coordinator; waits for its next incarnation if it dies.

        That has neither keys nor budget, and gets them before anything else is asked of it.
        """
        call, deadline = self._ray.network.call, self._ray.loop.time() + RETURN_DEADLINE_S
        while True:
            try:
                if not self._attached:
                    await call(self.coordinator, "call", "attach", self._secrets, self._budget_usd)
                    self._attached = True
                return await call(self.coordinator, "call", method, *arguments)
            except UnreachableError:
                self._attached = False
                if self._ray.loop.time() > deadline:
                    problem = f"it has not come back for {RETURN_DEADLINE_S:.0f} s"
                    raise ActorLostError("the coordinator", problem) from None
                await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        """A coordinator that is stopped never fails a call: ask, and kill it."""
        peer = SimulatedPeer(self._ray, self.coordinator)
        while await until_dead(peer, SignsOfLife()):
            self._ray.kill(self.coordinator, for_good=False)
