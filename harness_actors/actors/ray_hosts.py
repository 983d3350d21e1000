"""The actors of a cell on Ray: plain classes, placed, and the peers that reach them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayTaskError

from harness_actors.actors.clock import SystemClock
from harness_actors.actors.coordinator_host import CoordinatorHost
from harness_actors.actors.embedded import EmbeddedModelHost
from harness_actors.actors.factory import (
    companions_of,
    executor_for,
    executor_needs,
    processes_for,
)
from harness_actors.actors.hosts import ExecutorHost
from harness_actors.actors.mailbox import Parcel, UnreachableError
from harness_actors.actors.processes import mark_of_this_process
from harness_actors.actors.ray_cell import on_node
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal

LEAVE_S = 30.0
"""How long a coordinator stays that can do nothing any more, when its driver knows of it."""


class RayPeer:
    """Reaches an actor over Ray, and says in our words what became of a call."""

    def __init__(self, handle: "ActorHandle[Any]", name: str) -> None:
        self._handle = handle
        self._name = name

    async def receive(self, batch: Sequence[Parcel]) -> None:
        await self._call(self._handle.receive, batch)

    async def hello(self) -> tuple[ProcessMark, ...]:
        marks: tuple[ProcessMark, ...] = await self._call(self._handle.hello)
        return marks

    async def watch(self) -> None:
        await self._call(self._handle.watch)

    def kill(self) -> None:
        ray.kill(self._handle)

    async def _call(self, method: Any, *arguments: Any) -> Any:
        try:
            return await method.remote(*arguments)
        except ActorUnavailableError as error:
            raise UnreachableError(str(error)) from None
        except RayActorError as error:
            raise ActorLostError(self._name, str(error).splitlines()[0]) from None
        except RayTaskError as error:
            if isinstance(error.cause, HarnessError):
                raise error.cause from None
            raise


class CoordinatorPeer(RayPeer):
    """How the host in a slot reaches its coordinator."""

    def __init__(self, handle: "ActorHandle[Any]", slot: Slot, incarnation: int) -> None:
        super().__init__(handle, "the coordinator")
        self._slot = slot
        self._incarnation = incarnation

    async def receive(self, batch: Sequence[Parcel]) -> None:
        await self._call(self._handle.receive, self._slot, self._incarnation, batch)


class RayExecutorHost(ExecutorHost):
    """An executor host that makes its own parts, in the process that it lives in."""

    def __init__(
        self, slot: Slot, incarnation: int, coordinator: "ActorHandle[Any]", term: int
    ) -> None:
        processes = processes_for(slot, own_process=True)
        super().__init__(
            slot,
            executor_for(slot, SystemClock(), processes),
            CoordinatorPeer(coordinator, slot, incarnation),
            term=term,
            companions=companions_of(slot, processes),
            tool_processes=processes,
        )


class RayModelPeer(RayPeer):
    """How the coordinator reaches the host of the embedded model."""

    async def start(self) -> str:
        url: str = await self._call(self._handle.start)
        return url


class RayHostStarter:
    """Places executor hosts on the node of their coordinator."""

    def __init__(self, coordinator: "ActorHandle[Any]", node: str) -> None:
        self._coordinator = coordinator
        self._node = node
        self.term = 0

    async def start(self, slot: Slot, incarnation: int) -> RayPeer:
        # max_restarts=0: the coordinator decides what becomes of this actor's runs, and
        # starts the next incarnation itself.
        options = {"max_restarts": 0, **on_node(self._node)}
        actor = RayExecutorHostActor.options(**options)
        handle: Any = actor.remote(slot, incarnation, self._coordinator, self.term)
        return RayPeer(handle, str(slot))

    async def start_model(self, port: int) -> RayModelPeer:
        """Begin to start a host of the embedded model that listens on a port."""
        # max_restarts=0: it is started again by its seat, which knows when it is gone.
        options = {"max_restarts": 0, **on_node(self._node)}
        handle: Any = EmbeddedModelActor.options(**options).remote(port)
        return RayModelPeer(handle, "embedded_model")


class RayCoordinator:
    """The coordinator of a cell, as its actor makes it.

    A constructor that raises would be the end of the actor, and its cause would reach
    the driver as a text of Ray's; so the error is kept, and every call raises it.

    Args:
        store: Path of the journal.
        command: The command that submits runs.
        node: Ray's id of the node that the cell lives on.
        agent_turns: Number of agent turn hosts.
        leave_s: See `LEAVE_S`.
    """

    def __init__(
        self, store: str, command: str, node: str, agent_turns: int, leave_s: float = LEAVE_S
    ) -> None:
        self._leave_s = leave_s
        self._host: CoordinatorHost | HarnessError
        self._self: Any = ray.get_runtime_context().current_actor
        starter = RayHostStarter(self._self, node)
        try:
            self._host = CoordinatorHost(
                journal=SqliteJournal(Path(store)),
                store=store,
                command=command,
                starter=starter,
                needs=executor_needs(),
                agent_turns=agent_turns,
                clock=SystemClock(),
                place_model=starter.start_model,
                process=mark_of_this_process("coordinator"),
            )
        except HarnessError as error:
            self._host = error
            return
        starter.term = self._host.term
        self._starting = asyncio.ensure_future(self._host.start())

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the host; for the driver.

        Raises:
            HarnessError: Whatever it raises, or the reason why there is none.
        """
        if isinstance(self._host, HarnessError):
            raise self._host
        await self._starting
        try:
            return await getattr(self._host, method)(*arguments)
        finally:
            if self._host.is_broken and method == "happened":
                # Whoever follows the runs knows; the journal may be read for a while.
                self._self.leave.remote()

    async def leave(self) -> None:
        """End this actor in a while, for good: Ray does not restart one that exits."""
        await asyncio.sleep(self._leave_s)
        ray.actor.exit_actor()  # type: ignore[no-untyped-call]

    async def receive(self, slot: Slot, incarnation: int, batch: Sequence[Parcel]) -> None:
        """Take what the host in a slot posted."""
        if isinstance(self._host, CoordinatorHost):
            await self._host.receive(slot, incarnation, batch)

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (mark_of_this_process("coordinator"),)


RayExecutorHostActor = ray.remote(RayExecutorHost)
EmbeddedModelActor = ray.remote(EmbeddedModelHost)
RayCoordinatorActor = ray.remote(RayCoordinator)
