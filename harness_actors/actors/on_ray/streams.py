"""The stream actor on Ray, for drivers."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.on_ray.peer import reach
from harness_actors.actors.text.streams import Cursor, ReachedStreams, Reading, reach_streams

T = TypeVar("T")


class StreamReader:
    """The stream actor for a driver, which may lose its Ray while it reads."""

    def __init__(self, peer: ReachedStreams, connection: Connection) -> None:
        self._peer = peer
        self._connection = connection

    @classmethod
    async def reach(cls, name: str, connection: Connection) -> "StreamReader":
        """That of a name on the Ray of a connection.

        Raises:
            ActorLostError: There is none.
            UnreachableError: That Ray is lost.
        """
        return cls(await _unless_lost(connection, reach_streams(reach, name)), connection)

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
