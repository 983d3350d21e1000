"""The stream actor on Ray."""

import asyncio
from collections.abc import Sequence
from typing import Any

import ray

from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.on_ray.peer import PlacedActor
from harness_actors.actors.on_ray.placement import on_node
from harness_actors.actors.text.streams import Cursor, Reading, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError


class RayStreamsPeer(PlacedActor):
    """How the stream actor is reached, by those who speak and by those who read."""

    async def receive(self, batch: Sequence[Spoken | RunOver]) -> tuple[str, ...]:
        unread: tuple[str, ...] = await self._call(self._handle.receive, batch)
        return unread

    async def read(self, run_id: str, cursor: Cursor | None) -> Reading:
        reading: Reading = await self._call(self._handle.read, run_id, cursor)
        return reading


def place_streams(name: str, node: str) -> RayStreamsPeer:
    """Begin to start a stream actor on a node."""
    # max_restarts=0: its seat starts another, under another name. Named, because whoever
    # posts to it or reads from it is told no more than that.
    options = {"name": name, "namespace": NAMESPACE, "max_restarts": 0, **on_node(node)}
    handle: Any = TextStreamsActor.options(**options).remote()
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


TextStreamsActor = ray.remote(TextStreams)
