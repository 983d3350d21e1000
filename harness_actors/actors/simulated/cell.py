"""A cell on a simulated Ray: its coordinator and its hosts, as their actors make them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.journal_watch import is_standing, watch_journal
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.host.shipped_executors import executor_needs
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.tools import SimulatedToolProcesses, Work
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import HarnessError
from harness_actors.ports import Executor, Journal, ToolProcesses
from harness_actors.records import ProcessMark
from harness_actors.state import AGENT_TURN

EPOCH = 1_700_000_000.0


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
        executor_for: Makes what a slot hosts, as a step of the host's process, given what
            starts the processes of its tools; None where the executor comes in the run's own
            code.
        work: What processes do that tools start.
        agent_turns: Number of agent turn hosts, at least 1.
        serving: Told of each coordinator that has begun its term.
        watched: The journal is a file, and cells look whether it is at its path.
    """

    open_journal: Callable[[], Journal]
    executor_for: Callable[[Slot, ToolProcesses | None], Executor | None]
    work: Work
    agent_turns: int = 1
    serving: Callable[[CoordinatorHost], None] = lambda _: None
    watched: bool = False


class SimulatedPeer:
    """Reaches an actor over the simulated network."""

    def __init__(self, ray: SimulatedRay, actor: SimulatedActor, *leading: object) -> None:
        self._ray = ray
        self.actor = actor
        self._leading = leading

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        told: Sequence[Envelope] = await self._ray.network.call(
            self.actor, "receive", *self._leading, batch
        )
        return told

    def tell(self, batch: Sequence[Parcel]) -> bool:
        return self._ray.network.tell(self.actor, "receive", *self._leading, batch)

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

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        return await self.host.receive(batch)

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
            tools = self._tools_of(slot, process)
            coordinator = SimulatedPeer(self._ray, self._owner, slot, incarnation)
            host = ExecutorHost(
                slot,
                self._parts.executor_for(slot, tools),
                coordinator,
                term=self.term,
                tool_processes=tools,
                tell=coordinator.tell,
            )
            return SimulatedHost(host, process)

        actor = self._ray.start(str(slot), make, owner=self._process)
        self.hosts[slot] = actor
        return SimulatedPeer(self._ray, actor)

    def _tools_of(self, slot: Slot, process: SimulatedProcess) -> SimulatedToolProcesses | None:
        if slot.executor != AGENT_TURN:
            return None
        return SimulatedToolProcesses(self._ray.machine, process, str(slot), self._parts.work)


class SimulatedCoordinator:
    """The coordinator of a cell, as its actor makes it; as on Ray, it keeps its first error."""

    def __init__(
        self, ray: SimulatedRay, parts: CellParts, command: str, actor: SimulatedActor
    ) -> None:
        self.starter = SimulatedHostStarter(ray, parts, actor)
        self.process = actor.process
        self.host: CoordinatorHost | HarnessError
        self._watching: asyncio.Future[bool] | None = None
        try:
            self._journal = cast(Any, parts.open_journal())
            self.host = CoordinatorHost(
                journal=self._journal,
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
        if parts.watched:
            self._watching = asyncio.ensure_future(watch_journal(self._journal, self.host))

    async def call(self, method: str, *arguments: Any) -> Any:
        if isinstance(self.host, HarnessError):
            raise self.host
        await asyncio.shield(self._starting)
        if method == "serve":
            return await self._serve(self.host)
        return await getattr(self.host, method)(*arguments)

    async def _serve(self, host: CoordinatorHost) -> None:
        """Another driver is there."""
        await is_standing(self._journal, host)
        if host.failure is not None:
            raise host.failure
        host.forget_driver()

    async def receive(
        self, slot: Slot, incarnation: int, batch: Sequence[Parcel]
    ) -> Sequence[Envelope]:
        if isinstance(self.host, CoordinatorHost):
            return await self.host.receive(slot, incarnation, batch)
        return ()

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (self.process.mark,)
