"""The executor hosts of a cell on Ray: plain classes, placed, and the peers at either end."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.actor import ActorHandle

from harness_actors.actors.carrying import carry
from harness_actors.actors.clock import SystemClock
from harness_actors.actors.embedded import EmbeddedModelHost
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.host.shipped_executors import (
    companions_of,
    executor_for,
    keeping_for,
    processes_for,
    runs_users_code,
)
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.on_ray.batches import pack_batch, unpack_batch
from harness_actors.actors.on_ray.channels import Channel, Channels, Invitation, connect
from harness_actors.actors.on_ray.collecting import collect_seldom
from harness_actors.actors.on_ray.peer import PlacedActor
from harness_actors.actors.on_ray.placement import on_node
from harness_actors.actors.on_ray.streams import RayStreamsPeer, place_streams, reach_streams
from harness_actors.actors.tapping import tap_own_process
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.records import ProcessMark


class HostPeer(PlacedActor):
    """How the coordinator reaches the host in a slot."""

    def __init__(self, handle: "ActorHandle[Any]", invitation: Invitation) -> None:
        super().__init__(handle, str(invitation.slot))
        self._invitation = invitation

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        packed, channel = pack_batch(batch), self._invitation.channel
        if channel is None or not channel.is_open:
            await self._call(self._handle.take, packed)
        else:
            await channel.ask(packed)
        return ()


class CoordinatorPeer(PlacedActor):
    """How the host in a slot reaches its coordinator."""

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


class RayExecutorHost:
    """The actor of an executor host, whose parts it makes in the process that it lives in.

    It has a host and is none: Ray puts a wrapper around every method of an actor.
    """

    def __init__(
        self,
        slot: Slot,
        incarnation: int,
        coordinator: "ActorHandle[Any]",
        term: int,
        address: str,
        token: bytes,
        store: str,
    ) -> None:
        collect_seldom()
        carried = carry(Path(store))
        if runs_users_code(slot):
            # Before any code of users is loaded, whose logging takes the streams as they are.
            tap_own_process()
        processes = processes_for(slot, own_process=True, carried=carried)
        self._address, self._token = address, token
        self._peer = CoordinatorPeer(coordinator, slot, incarnation)
        self._host = ExecutorHost(
            slot,
            executor_for(slot, SystemClock(), processes),
            self._peer,
            term=term,
            companions=companions_of(slot, processes),
            tool_processes=processes,
            reach_streams=reach_streams,
            tell=self._peer.tell,
            keeping=keeping_for(slot, Path(store)),
        )

    async def hello(self) -> tuple[ProcessMark, ...]:
        address, self._address = self._address, ""
        if address:
            self._peer.channel = await connect(address, self._token, self.take)
        return await self._host.hello()

    async def watch(self) -> None:
        await self._host.watch()

    async def take(self, packed: bytes) -> bytes:
        """`ExecutorHost.receive`, as another process calls it."""
        await self._host.receive(unpack_batch(packed))
        return b""


class RayModelHost(EmbeddedModelHost):
    """The actor of the embedded model's host."""

    def __init__(self, port: int, store: str) -> None:
        carry(Path(store))
        super().__init__(port)


class RayModelPeer(PlacedActor):
    """How the coordinator reaches the host of the embedded model."""

    async def start(self) -> str:
        url: str = await self._call(self._handle.start)
        return url


class RayHostStarter:
    """Places executor hosts on the node of their coordinator."""

    def __init__(
        self, coordinator: "ActorHandle[Any]", node: str, channels: Channels, store: str
    ) -> None:
        self._coordinator = coordinator
        self._store = store
        self._node = node
        self._channels = channels
        self.term = 0

    async def start(self, slot: Slot, incarnation: int) -> HostPeer:
        # max_restarts=0: the coordinator decides what becomes of this actor's runs, and
        # starts the next incarnation itself. No task events: nobody looks at them, and Ray
        # would send and keep some for each of the many calls.
        options = {"max_restarts": 0, "enable_task_events": False, **on_node(self._node)}
        actor = RayExecutorHostActor.options(**options)
        invited = self._channels.invite(slot, incarnation)
        handle: Any = actor.remote(
            slot,
            incarnation,
            self._coordinator,
            self.term,
            invited.address,
            invited.token,
            self._store,
        )
        return HostPeer(handle, invited)

    async def start_model(self, port: int) -> RayModelPeer:
        """Begin to start a host of the embedded model that listens on a port."""
        # max_restarts=0: it is started again by its seat, which knows when it is gone.
        options = {"max_restarts": 0, **on_node(self._node)}
        handle: Any = EmbeddedModelActor.options(**options).remote(port, self._store)
        return RayModelPeer(handle, "embedded_model")

    async def start_streams(self, name: str) -> RayStreamsPeer:
        """Begin to start a stream actor that is known under a name."""
        return place_streams(name, self._node, self._store)


RayExecutorHostActor = ray.remote(RayExecutorHost)
EmbeddedModelActor = ray.remote(RayModelHost)
