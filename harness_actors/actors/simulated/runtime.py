"""The simulated runtime: the shipped actors in one process, on a time of their own."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_actors.actors.coordinator_host import CoordinatorHost
from harness_actors.actors.doubt import SignsOfLife, until_dead
from harness_actors.actors.factory import executor_needs
from harness_actors.actors.hosts import ExecutorHost
from harness_actors.actors.mailbox import Parcel, UnreachableError
from harness_actors.actors.runtime import Happened, StopMode
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.ports import Executor, Journal
from harness_actors.records import ProcessMark, RunHeading, RunSpec
from harness_actors.state import AGENT_TURN

EPOCH = 1_700_000_000.0
RETURN_DEADLINE_S = 90.0


class SimulatedClock:
    """The time of a simulated loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return EPOCH + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellParts:
    """What a simulated cell is made of.

    Attributes:
        open_journal: Opens the journal, as each incarnation of the coordinator does.
        executor_for: Makes what a slot hosts, as a step of the host's process; None where
            the executor comes in the run's own code.
        agent_turns: Number of agent turn hosts, at least 1.
        serving: Told of each coordinator that has begun its term.
    """

    open_journal: Callable[[], Journal]
    executor_for: Callable[[Slot], Executor | None]
    agent_turns: int = 1
    serving: Callable[[CoordinatorHost], None] = lambda _: None


class SimulatedPeer:
    """Reaches an actor over the simulated network."""

    def __init__(self, ray: SimulatedRay, actor: SimulatedActor, *leading: object) -> None:
        self._ray = ray
        self.actor = actor
        self._leading = leading

    async def receive(self, batch: Sequence[Parcel]) -> None:
        await self._ray.network.call(self.actor, "receive", *self._leading, batch)

    async def hello(self) -> tuple[ProcessMark, ...]:
        marks: tuple[ProcessMark, ...] = await self._ray.network.call(self.actor, "hello")
        return marks

    async def watch(self) -> None:
        await self._ray.network.call(self.actor, "watch", lasting=True)

    def kill(self) -> None:
        self._ray.kill(self.actor)


class SimulatedHost:
    """What serves the calls of a host's actor."""

    def __init__(self, host: ExecutorHost, process: SimulatedProcess) -> None:
        self.host = host
        self.process = process

    async def receive(self, batch: Sequence[Parcel]) -> None:
        await self.host.receive(batch)

    async def hello(self) -> tuple[ProcessMark, ...]:
        companion = self.process.companion
        return (self.process.mark, *(() if companion is None else (companion.mark,)))


class SimulatedHostStarter:
    """Starts executor hosts as children of their coordinator."""

    def __init__(self, ray: SimulatedRay, parts: CellParts, owner: SimulatedActor) -> None:
        self._ray = ray
        self._parts = parts
        self._owner = owner
        self._process = owner.process
        self.term = 0
        self.hosts: dict[Slot, SimulatedActor] = {}
        """By slot: the newest host."""

    async def start(self, slot: Slot, incarnation: int) -> SimulatedPeer:
        def make(process: SimulatedProcess) -> SimulatedHost:
            process.term = self.term
            if slot.executor == AGENT_TURN:
                process.companion = self._ray.machine.spawn(f"tools of {slot}", process)
            upward = SimulatedPeer(self._ray, self._owner, slot, incarnation)
            executor = self._parts.executor_for(slot)
            return SimulatedHost(ExecutorHost(slot, executor, upward, term=self.term), process)

        actor = self._ray.start(str(slot), make, owner=self._process)
        self.hosts[slot] = actor
        return SimulatedPeer(self._ray, actor)


class SimulatedCoordinator:
    """The coordinator of a cell, as its actor makes it; as on Ray, it keeps its first error."""

    def __init__(
        self, ray: SimulatedRay, parts: CellParts, command: str, actor: SimulatedActor
    ) -> None:
        self.starter = SimulatedHostStarter(ray, parts, actor)
        self.process = actor.process
        self.host: CoordinatorHost | HarnessError
        try:
            self.host = CoordinatorHost(
                journal=parts.open_journal(),
                store="journal",
                command=command,
                starter=self.starter,
                needs=executor_needs(),
                agent_turns=parts.agent_turns,
                clock=SimulatedClock(ray.loop),
                process=actor.process.mark,
                processes=ray.machine,
            )
        except HarnessError as error:
            self.host = error
            return
        self.starter.term = actor.process.term = self.host.term
        parts.serving(self.host)
        self._starting = asyncio.ensure_future(self.host.start())

    async def call(self, method: str, *arguments: Any) -> Any:
        if isinstance(self.host, HarnessError):
            raise self.host
        await asyncio.shield(self._starting)
        return await getattr(self.host, method)(*arguments)

    async def receive(self, slot: Slot, incarnation: int, batch: Sequence[Parcel]) -> None:
        if isinstance(self.host, CoordinatorHost):
            await self.host.receive(slot, incarnation, batch)

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (self.process.mark,)


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
        await runtime._call("attach", {})
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

    async def allow(self, budget_usd: float) -> None:
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
        """One call of the coordinator; waits for its next incarnation if it dies."""
        deadline = self._ray.loop.time() + RETURN_DEADLINE_S
        while True:
            try:
                return await self._ray.network.call(self.coordinator, "call", method, *arguments)
            except UnreachableError:
                if self._ray.loop.time() > deadline:
                    problem = f"it has not come back for {RETURN_DEADLINE_S:.0f} s"
                    raise ActorLostError("the coordinator", problem) from None
                await asyncio.sleep(0.1)
                await self._attach_again()

    async def _attach_again(self) -> None:
        """Give the keys to the next incarnation, which does not have them."""
        try:
            await self._ray.network.call(
                self.coordinator, "call", "attach", self._secrets, self._budget_usd
            )
        except UnreachableError:
            return

    async def _watch(self) -> None:
        """A coordinator that is stopped never fails a call: ask, and kill it."""
        peer = SimulatedPeer(self._ray, self.coordinator)
        while await until_dead(peer, SignsOfLife()):
            self._ray.kill(self.coordinator, for_good=False)
