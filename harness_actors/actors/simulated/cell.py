"""A cell on a simulated Ray: its coordinator and its hosts, as their actors make them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, cast

from harness_actors.actors.clock import SystemClock
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.journal_watch import is_standing, watch_journal
from harness_actors.actors.hosted import ActorCall, Hosted, Place
from harness_actors.actors.kinds import ActorKind, Kinds
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.tools import SimulatedToolProcesses, Work
from harness_actors.coordination.at_once import AnswerAtOnce
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.executors.at_once import answer_at_once
from harness_actors.ports import Journal
from harness_actors.records import ProcessMark

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = 1_700_000_000.0


class SimulatedClock(SystemClock):
    """The time of a simulated loop, on which sleeping is as on any."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return EPOCH + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellParts:
    """What a simulated cell is made of.

    Attributes:
        open_journal: Opens the journal, as each incarnation of the coordinator does.
        kinds: The actors beside the coordinator, which make what they host as a step of their
            process.
        work: What processes do that tools start.
        agent_turns: Number of agent turn hosts, at least 1.
        serving: Told of each coordinator that has begun its term.
        watched: The journal is a file, and cells look whether it is at its path.
        at_once: Says what executors answer that have nothing to do; None where each is asked.
    """

    open_journal: Callable[[], Journal]
    kinds: Kinds
    work: Work
    agent_turns: int = 1
    serving: Callable[[CoordinatorHost], None] = lambda _: None
    watched: bool = False
    at_once: AnswerAtOnce | None = answer_at_once


class SimulatedPeer:
    """Reaches an actor over the simulated network."""

    def __init__(
        self, ray: SimulatedRay, actor: SimulatedActor, *leading: object, address: str = ""
    ) -> None:
        self._ray = ray
        self.actor = actor
        self.address = address
        self._leading = leading

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        told: Sequence[Envelope] = await self._ray.network.call(
            self.actor, "receive", *self._leading, batch
        )
        return told

    def tell(self, batch: Sequence[Parcel]) -> bool:
        return self._ray.network.tell(self.actor, "receive", *self._leading, batch)

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """See `Reached`."""
        answer: T = await self._ray.network.call(self.actor, "call", method.__name__, *arguments)
        return answer

    async def hello(self) -> tuple[ProcessMark, ...]:
        marks: tuple[ProcessMark, ...] = await self._ray.network.call(self.actor, "hello")
        return marks

    async def watch(self) -> None:
        await self._ray.network.call(self.actor, "watch", lasting=True)

    def kill(self) -> None:
        self._ray.kill(self.actor)


class SimulatedHost:
    """What serves the calls of an actor, whatever that hosts."""

    def __init__(self, hosted: Hosted, process: SimulatedProcess) -> None:
        self.hosted = hosted
        self.process = process

    async def receive(self, batch: Sequence[Parcel]) -> Any:
        return await self.hosted.receive(batch)

    async def call(self, method: str, *arguments: Any) -> Any:
        return await getattr(self.hosted, method)(*arguments)

    async def hello(self) -> tuple[ProcessMark, ...]:
        await self.hosted.ready()
        companion = self.process.companion
        return (self.process.mark, *(() if companion is None else (companion.mark,)))


class SimulatedHostStarter:
    """Starts actors as children of their coordinator."""

    def __init__(self, ray: SimulatedRay, parts: CellParts, owner: SimulatedActor) -> None:
        self._ray = ray
        self._parts = parts
        self._owner = owner
        self._process = owner.process
        self._clock = SimulatedClock(ray.loop)
        self.term = 0

    async def start(self, slot: Slot, incarnation: int) -> SimulatedPeer:
        kind = self._parts.kinds[slot.kind]
        address = self._address(kind, slot, incarnation)

        def make(process: SimulatedProcess) -> SimulatedHost:
            process.term = self.term
            coordinator = SimulatedPeer(self._ray, self._owner, slot, incarnation)
            tools = None
            if kind.runs_tools:
                machine, work = self._ray.machine, self._parts.work
                tools = SimulatedToolProcesses(machine, process, str(slot), work)
            place = Place(
                slot=slot,
                address=address,
                coordinator=coordinator,
                term=self.term,
                clock=self._clock,
                store=None,
                reach=partial(reach, self._ray),
                tell=coordinator.tell,
                tool_processes=tools,
            )
            return SimulatedHost(kind.host(place), process)

        actor = self._ray.start(str(slot), make, owner=self._process)
        actor.address = address
        return SimulatedPeer(self._ray, actor, address=address)

    def _address(self, kind: ActorKind, slot: Slot, incarnation: int) -> str:
        if kind.reachable == "through its cell":
            return ""
        return f"{slot}:{self.term}" + f".{incarnation}" * (kind.reachable == "by name")


async def reach(ray: SimulatedRay, address: str) -> SimulatedPeer:
    """The newest actor at an address.

    Raises:
        ActorLostError: There is none.
    """
    for actor in reversed(ray.actors):
        if address and actor.address == address and not actor.dead:
            return SimulatedPeer(ray, actor, address=address)
    raise ActorLostError(address, "nobody is there")


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
                agent_turns=parts.agent_turns,
                clock=SimulatedClock(ray.loop),
                process=actor.process.mark,
                processes=ray.machine,
                kinds=parts.kinds,
                at_once=parts.at_once,
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
