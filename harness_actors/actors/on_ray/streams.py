"""The stream actor on Ray."""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import ray

from harness_actors.actors.carrying import carry
from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.on_ray.peer import PlacedActor
from harness_actors.actors.on_ray.placement import on_node
from harness_actors.actors.text.streams import Cursor, Reading, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError

T = TypeVar("T")


class RayStreamsPeer(PlacedActor):
    """How the stream actor is reached, by those who speak and by those who read."""

    async def receive(self, batch: Sequence[Spoken | RunOver]) -> tuple[str, ...]:
        unread: tuple[str, ...] = await self._call(self._handle.receive, batch)
        return unread

    async def read(self, run_id: str, cursor: Cursor | None) -> Reading:
        reading: Reading = await self._call(self._handle.read, run_id, cursor)
        return reading


class RayTextStreams(TextStreams):
    """The actor of the streams of a journal's runs."""

    def __init__(self, store: str) -> None:
        carry(Path(store))
        super().__init__()


def place_streams(name: str, node: str, store: str) -> RayStreamsPeer:
    """Begin to start a stream actor on a node, for the runs of a journal."""
    # max_restarts=0: its seat starts another, under another name. Named, because whoever
    # posts to it or reads from it is told no more than that.
    options = {"name": name, "namespace": NAMESPACE, "max_restarts": 0, **on_node(node)}
    handle: Any = TextStreamsActor.options(**options).remote(store)
    return RayStreamsPeer(handle, "streams")


async def reach_streams(name: str) -> RayStreamsPeer:
    """The stream actor of a name.

    Raises:
        ActorLostError: There is none.
    """
    try:
        handle = await asyncio.to_thread(ray.get_actor, name, namespace=NAMESPACE)
    except ValueError:
        raise ActorLostError("streams", f"there is no actor {name!r}") from None
    return RayStreamsPeer(handle, "streams")


class StreamReader:
    """The stream actor for a driver, which may lose its Ray while it reads."""

    def __init__(self, peer: RayStreamsPeer, connection: Connection) -> None:
        self._peer = peer
        self._connection = connection

    @classmethod
    async def reach(cls, name: str, connection: Connection) -> "StreamReader":
        """That of a name on the Ray of a connection.

        Raises:
            ActorLostError: There is none.
            UnreachableError: That Ray is lost.
        """
        return cls(await _unless_lost(connection, reach_streams(name)), connection)

    async def read(self, run_id: str, cursor: Cursor | None) -> Reading:
        return await _unless_lost(self._connection, self._peer.read(run_id, cursor))


async def _unless_lost(connection: Connection, awaited: Coroutine[Any, Any, T]) -> T:
    try:
        if connection.problem is not None or not connection.is_current:
            awaited.close()
            raise RayLostError(connection.problem or "this process has disconnected from it")
        return await connection.unless_lost(awaited)
    except RayLostError as lost:
        raise UnreachableError(str(lost)) from None


TextStreamsActor = ray.remote(RayTextStreams)
