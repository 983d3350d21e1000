"""The runtime without Ray: the same actors as plain objects in one process."""

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar, TypeVarTuple

from harness_actors.actors.carrying import carry, put_down
from harness_actors.actors.cell_calls import CellRuntime
from harness_actors.actors.clock import SystemClock
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.journal_watch import watch_journal
from harness_actors.actors.host.shipped_executors import supervised_processes
from harness_actors.actors.hosted import ActorCall, Hosted, Place
from harness_actors.actors.kinds import KINDS, Kinds
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.processes import mark_of_this_process
from harness_actors.actors.tapping import tap_for_a_while
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import ActorLostError
from harness_actors.ports import Clock
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LocalCoordinatorPeer:
    """How a host of the same process reaches the coordinator."""

    def __init__(self, coordinator: CoordinatorHost, slot: Slot, incarnation: int, copies: bool):
        self._coordinator = coordinator
        self._slot = slot
        self._incarnation = incarnation
        self._copies = copies

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        if self._copies:
            batch = pickle.loads(pickle.dumps(batch))
        return await self._coordinator.receive(self._slot, self._incarnation, batch)


class LocalHostPeer:
    """How an actor of the same process is reached, by its coordinator and by others."""

    def __init__(
        self,
        hosted: Hosted,
        place: Place,
        copies: bool,
    ) -> None:
        self.hosted = hosted
        self.address = place.address
        self._slot = place.slot
        self._copies = copies
        self._dead = asyncio.Event()

    async def receive(self, batch: Sequence[Parcel]) -> Any:
        self._check()
        if self._copies:
            batch = pickle.loads(pickle.dumps(batch))
        return await self.hosted.receive(batch)

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """See `Reached`; a call that waits is ended by what it waits for."""
        self._check()
        answer: T = await getattr(self.hosted, method.__name__)(*arguments)
        return answer

    async def hello(self) -> tuple[ProcessMark, ...]:
        self._check()
        await self.hosted.ready()
        # Not this process's mark: what ends with the actor is the actor alone. Nor that of a
        # supervisor, which is started by the first command.
        return (replace(mark_of_this_process(str(self._slot)), started=-1),)

    async def watch(self) -> None:
        await self._dead.wait()

    def kill(self) -> None:
        self._dead.set()
        self.hosted.close()

    def _check(self) -> None:
        if self._dead.is_set():
            raise ActorLostError(str(self._slot), "it was killed")


class LocalHostStarter:
    """Makes the actors of a cell in this process.

    Args:
        clock: Their time.
        copies: Send messages through pickle, as between processes, so that aliasing
            hides nothing.
        store: The journal, beside which is kept what runs print; None keeps nothing.
        kinds: What there is to know of them.
    """

    def __init__(
        self, clock: Clock, *, copies: bool, store: Path | None = None, kinds: Kinds = KINDS
    ) -> None:
        self._clock = clock
        self._store = store
        self._copies = copies
        self._kinds = kinds
        self.coordinator: CoordinatorHost | None = None
        self.hosts: dict[Slot, LocalHostPeer] = {}
        """By slot: the newest actor."""

    async def start(self, slot: Slot, incarnation: int) -> LocalHostPeer:
        if self.coordinator is None:
            raise ActorLostError(str(slot), "its coordinator is not there yet")
        kind = self._kinds[slot.kind]
        processes = supervised_processes(own_process=False) if kind.runs_tools else None
        place = Place(
            slot=slot,
            # Of ports this process needs none.
            address=f"{slot}:{token_hex(8)}" if kind.reachable == "by name" else "",
            coordinator=LocalCoordinatorPeer(self.coordinator, slot, incarnation, self._copies),
            term=self.coordinator.term,
            clock=self._clock,
            store=self._store if kind.gets_programs else None,
            reach=self.reach,
            tool_processes=processes,
        )
        self.hosts[slot] = LocalHostPeer(kind.host(place), place, self._copies)
        return self.hosts[slot]

    async def reach(self, address: str) -> LocalHostPeer:
        """The actor at an address.

        Raises:
            ActorLostError: There is none.
        """
        for peer in self.hosts.values():
            if address and peer.address == address:
                return peer
        raise ActorLostError(address, "it is gone")


class LocalRuntime(CellRuntime):
    """Answers the `Runtime` port in the event loop of its caller."""

    def __init__(
        self, coordinator: CoordinatorHost, starter: LocalHostStarter, journal: SqliteJournal
    ) -> None:
        super().__init__(starter.reach)
        self._coordinator = coordinator
        self._watching = asyncio.ensure_future(watch_journal(journal, coordinator))
        self.starter = starter
        self._store = journal.path
        self._untap = tap_for_a_while()

    @classmethod
    async def open(
        cls, store: Path, command: str, *, copies: bool = False, clock: Clock | None = None
    ) -> "LocalRuntime":
        """Serve a journal in this process.

        Args:
            store: The journal's file; made if there is none.
            command: Name of the command that submits the runs.
            copies: Send messages through pickle.
            clock: The time; the machine's by default.
        """
        clock = clock or SystemClock()
        starter = LocalHostStarter(clock, copies=copies, store=store)
        journal = await asyncio.to_thread(SqliteJournal, store)
        carry(store)
        coordinator = CoordinatorHost(
            journal=journal,
            store=str(store),
            command=command,
            starter=starter,
            # More would share one event loop, which makes nothing faster.
            agent_turns=1,
            clock=clock,
        )
        starter.coordinator = coordinator
        await coordinator.start()
        return cls(coordinator, starter, journal)

    async def ask(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        answer: T = await getattr(self._coordinator, call.__name__)(*arguments)
        return answer

    async def close(self) -> None:
        self._watching.cancel()
        try:
            await self._coordinator.close()
        finally:
            # From here on this process may live for days, and serves nothing.
            put_down(self._store)
            self._untap()
