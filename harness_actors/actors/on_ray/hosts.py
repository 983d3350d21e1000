"""The actors of a cell on Ray: plain classes, placed, and the peers at either end."""

import asyncio
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import ray
from ray.actor import ActorHandle

from harness_actors.actors.carrying import carry
from harness_actors.actors.clock import SystemClock
from harness_actors.actors.host.shipped_executors import marks_of_host, supervised_processes
from harness_actors.actors.hosted import Place, free_port
from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.kinds import ActorKind, Kinds
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.on_ray.batches import pack_batch, unpack_batch
from harness_actors.actors.on_ray.channel import Channel
from harness_actors.actors.on_ray.channels import Channels, Invitation, connect
from harness_actors.actors.on_ray.collecting import collect_seldom
from harness_actors.actors.on_ray.peer import PlacedActor, reach
from harness_actors.actors.on_ray.placement import on_node
from harness_actors.actors.tapping import tap_own_process
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.records import ProcessMark


class HostPeer(PlacedActor):
    """How the coordinator reaches the actor in a slot."""

    def __init__(self, handle: "ActorHandle[Any]", invitation: Invitation, address: str) -> None:
        super().__init__(handle, str(invitation.slot))
        self._invitation = invitation
        self.address = address

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        packed, channel = pack_batch(batch), self._invitation.channel
        if channel is None or not channel.is_open:
            await self._call(self._handle.take, packed)
        else:
            await channel.ask(packed)
        return ()


class CoordinatorPeer(PlacedActor):
    """How the actor in a slot reaches its coordinator."""

    def __init__(self, handle: "ActorHandle[Any]", slot: Slot, incarnation: int) -> None:
        super().__init__(handle, "the coordinator")
        self._slot = slot
        self._incarnation = incarnation
        self.channel: Channel | None = None

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        packed = pack_batch(batch)
        told: bytes
        if self.channel is None or not self.channel.is_open:
            told = await self._call(self._handle.receive, self._slot, self._incarnation, packed)
        else:
            told = await self.channel.ask(packed)
        return pickle.loads(told)  # type: ignore[no-any-return]

    def tell(self, batch: Sequence[Parcel]) -> bool:
        """Hand over a batch at once, without an answer; False where there is no channel."""
        if self.channel is None or not self.channel.is_open:
            return False
        self.channel.tell(pack_batch(batch))
        return True


class RayHost:
    """The actor of any kind, which makes what it hosts in the process that it lives in.

    It has a host and is none: Ray puts a wrapper around every method of an actor.
    """

    def __init__(
        self,
        kind: ActorKind,
        slot: Slot,
        incarnation: int,
        address: str,
        coordinator: "ActorHandle[Any]",
        term: int,
        invitation: tuple[str, bytes],
        store: str,
    ) -> None:
        collect_seldom()
        carried = carry(Path(store))
        if kind.gets_programs:
            # Before any code of users is loaded, whose logging takes the streams as they are.
            tap_own_process()
        self._slot = slot
        self._processes = (
            supervised_processes(own_process=True, carried=carried) if kind.runs_tools else None
        )
        self._channel, self._token = invitation
        self._peer = CoordinatorPeer(coordinator, slot, incarnation)
        self._hosted = kind.host(
            Place(
                slot=slot,
                address=address,
                coordinator=self._peer,
                term=term,
                clock=SystemClock(),
                store=Path(store) if kind.gets_programs else None,
                reach=reach,
                tell=self._peer.tell,
                tool_processes=self._processes,
            )
        )

    async def hello(self) -> tuple[ProcessMark, ...]:
        channel, self._channel = self._channel, ""
        if channel:
            self._peer.channel = await connect(channel, self._token, self.take)
        await self._hosted.ready()
        return marks_of_host(self._slot, self._processes)

    async def watch(self) -> None:
        """Never returns: the call fails when the process of this actor dies."""
        await asyncio.Event().wait()

    async def take(self, packed: bytes) -> bytes:
        """What its coordinator posts."""
        await self._hosted.receive(unpack_batch(packed))
        return b""

    async def call(self, method: str, *arguments: Any) -> Any:
        """A call of what it hosts, by the name of the method; see `Reached`."""
        return await getattr(self._hosted, method)(*arguments)


@dataclass(eq=False)
class RayHostStarter:
    """Places actors on the node of their coordinator."""

    _coordinator: "ActorHandle[Any]"
    _node: str
    _channels: Channels
    _store: str
    _kinds: Kinds
    _ports: dict[Slot, str] = field(default_factory=dict, init=False)
    term: int = field(default=0, init=False)

    async def start(self, slot: Slot, incarnation: int) -> HostPeer:
        kind = self._kinds[slot.kind]
        address = self._address(kind, slot)
        # max_restarts=0: the coordinator decides what becomes of this actor's runs, and
        # starts the next incarnation itself. No task events: nobody looks at them, and Ray
        # would send and keep some for each of the many calls.
        options = {"max_restarts": 0, "enable_task_events": False, **on_node(self._node)}
        if kind.reachable == "by name":
            options |= {"name": address, "namespace": NAMESPACE}
        invited = self._channels.invite(slot, incarnation)
        handle: Any = RayHostActor.options(**options).remote(
            kind,
            slot,
            incarnation,
            address,
            self._coordinator,
            self.term,
            (invited.address, invited.token),
            self._store,
        )
        return HostPeer(handle, invited, address)

    def _address(self, kind: ActorKind, slot: Slot) -> str:
        if kind.reachable == "by name":
            return f"{slot}:{token_hex(8)}"
        if kind.reachable == "at a port" and slot not in self._ports:
            self._ports[slot] = f"127.0.0.1:{free_port()}"
        return self._ports.get(slot, "")


RayHostActor = ray.remote(RayHost)
