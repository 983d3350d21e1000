"""The simulated runtime: the shipped actors in one process, on a time of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, TypeVarTuple

from harness_actors.actors.cell_calls import CellCalls, CellRuntime
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.liveness import Liveness, until_dead
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.simulated.cell import (
    CellParts,
    SimulatedCoordinator,
    SimulatedPeer,
    reach,
)
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.records import RunSpec

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

RETURN_DEADLINE_S = 90.0


class SimulatedRuntime(CellRuntime):
    """Answers the `Runtime` port for a simulated driver.

    When the coordinator dies, its next incarnation is asked; when it says nothing, it is
    killed.
    """

    def __init__(self, ray: SimulatedRay, coordinator: SimulatedActor) -> None:
        super().__init__(partial(reach, ray), ray.loop.time)
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
        await runtime.position()
        return runtime

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        self._secrets.update(secrets)
        await super().submit(specs, code=code, secrets=secrets)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self._secrets.update(secrets)
        await super().resume(run_ids, secrets=secrets)

    async def allow(self, budget_usd: float | None) -> None:
        self._budget_usd = budget_usd
        await super().allow(budget_usd)

    async def close(self) -> None:
        self._watching.cancel()
        try:
            async with asyncio.timeout(10):
                await self._once(CellCalls.close)
        except (HarnessError, UnreachableError, TimeoutError):
            pass  # it is killed below in any case, and the journal holds what is committed
        self._ray.kill(self.coordinator)

    async def ask(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """One call of the coordinator; waits for its next incarnation if it dies.

        That has neither keys nor budget, and gets them before anything else is asked of it.
        """
        deadline = self._ray.loop.time() + RETURN_DEADLINE_S
        while True:
            try:
                if not self._attached:
                    await self._once(CellCalls.attach, self._secrets, self._budget_usd)
                    self._attached = True
                return await self._once(call, *arguments)
            except UnreachableError:
                self._attached = False
                if self._ray.loop.time() > deadline:
                    problem = f"it has not come back for {RETURN_DEADLINE_S:.0f} s"
                    raise ActorLostError("the coordinator", problem) from None
                await asyncio.sleep(0.1)

    async def _once(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        network, method = self._ray.network, call.__name__
        answer: T = await network.call(self.coordinator, "call", method, *arguments)
        return answer

    async def _watch(self) -> None:
        """A coordinator that is stopped never fails a call: ask, and kill it."""
        peer = SimulatedPeer(self._ray, self.coordinator)
        while await until_dead(peer, Liveness()):
            self._ray.kill(self.coordinator, for_good=False)
