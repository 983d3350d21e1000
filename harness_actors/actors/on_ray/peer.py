"""Calls of an actor over Ray, with our words for what became of them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, TypeVarTuple

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayTaskError

from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.records import ProcessMark

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PlacedActor:
    """An actor of a cell, as its other actors see it.

    Args:
        handle: Ray's.
        name: What it is, for messages to people.
    """

    def __init__(self, handle: "ActorHandle[Any]", name: str) -> None:
        self._handle = handle
        self._name = name

    async def hello(self) -> tuple[ProcessMark, ...]:
        marks: tuple[ProcessMark, ...] = await self._call(self._handle.hello)
        return marks

    async def watch(self) -> None:
        await self._call(self._handle.watch)

    def kill(self) -> None:
        ray.kill(self._handle)

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """See `Reached`."""
        answer: T = await self._call(self._handle.call, method.__name__, *arguments)
        return answer

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


async def reach(name: str) -> PlacedActor:
    """The actor of a name.

    Raises:
        ActorLostError: There is none.
    """
    try:
        handle = await asyncio.to_thread(ray.get_actor, name, namespace=NAMESPACE)
    except ValueError:
        raise ActorLostError(name, "there is no actor of this name") from None
    return PlacedActor(handle, name)


class ActorOfDriver:
    """An actor for a driver, which may lose its Ray while it waits; see `Reached`."""

    def __init__(self, actor: PlacedActor, connection: Connection) -> None:
        self._actor = actor
        self._connection = connection

    @classmethod
    async def reach(cls, name: str, connection: Connection) -> "ActorOfDriver":
        """That of a name on the Ray of a connection; raises as its calls do."""
        return cls(await _unless_lost(connection, reach(name)), connection)

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        return await _unless_lost(self._connection, self._actor.call(method, *arguments))


async def _unless_lost(connection: Connection, awaited: Coroutine[Any, Any, T]) -> T:
    try:
        if connection.problem is not None or not connection.is_current:
            awaited.close()
            raise RayLostError(connection.problem or "this process has disconnected from it")
        return await connection.unless_lost(awaited)
    except RayLostError as lost:
        raise UnreachableError(str(lost)) from None
