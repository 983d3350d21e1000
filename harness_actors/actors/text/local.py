"""The stream actor without Ray: the same class in this process."""

import asyncio
from collections.abc import Sequence

from harness_actors.actors.text.streams import Cursor, Reading, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError
from harness_actors.records import ProcessMark


class LocalStreamsPeer:
    """How a stream actor of the same process is reached."""

    def __init__(self) -> None:
        self.streams = TextStreams()
        self._dead = asyncio.Event()

    async def receive(self, batch: Sequence[Spoken | RunOver]) -> tuple[str, ...]:
        self._check()
        return await self.streams.receive(batch)

    async def read(self, run_id: str, cursor: Cursor | None) -> Reading:
        self._check()
        reading = asyncio.ensure_future(self.streams.read(run_id, cursor))
        death = asyncio.ensure_future(self._dead.wait())
        try:
            await asyncio.wait((reading, death), return_when=asyncio.FIRST_COMPLETED)
            self._check()
            return await reading
        finally:
            reading.cancel()
            death.cancel()

    async def hello(self) -> tuple[ProcessMark, ...]:
        # What ends with it is it alone, and not this process.
        self._check()
        return ()

    async def watch(self) -> None:
        await self._dead.wait()

    def kill(self) -> None:
        self._dead.set()

    def _check(self) -> None:
        if self._dead.is_set():
            raise ActorLostError("streams", "it was killed")


class LocalStreams:
    """Makes stream actors in this process, and finds them by their names."""

    def __init__(self) -> None:
        self.peers: dict[str, LocalStreamsPeer] = {}

    async def place(self, name: str) -> LocalStreamsPeer:
        # Of those before, nobody needs more than to be told that they are gone.
        self.peers = {name: LocalStreamsPeer()}
        return self.peers[name]

    async def reach(self, name: str) -> LocalStreamsPeer:
        if name not in self.peers:
            raise ActorLostError(name, "it is gone")
        return self.peers[name]
