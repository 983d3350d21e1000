"""Reading what models say: the driver's end of the stream actor."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from harness_actors.actors.hosted import Reach, Reached
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.runtime import TextCursor, Texts
from harness_actors.actors.text.streams import POLL_S, Cursor, TextStreams
from harness_actors.errors import ActorLostError

RENEW_S = 20.0
"""How often a reader says that it still reads: who speaks forgets with its process."""
AGAIN_S = 0.1
BEFORE_ALL: Cursor = (0, 0, 0)


class Listener:
    """Answers the part of the `Runtime` port that is about text.

    Args:
        subscribe: Asks the coordinator; answers the name of the stream actor.
        reach: Finds it.
        monotonic: The time.
    """

    def __init__(
        self,
        subscribe: Callable[[Sequence[str]], Awaitable[str]],
        reach: Reach,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._ask = subscribe
        self._reach = reach
        self._stream = ""
        self._source: Reached | None = None
        self._asked_at: dict[str, float] = {}

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        """See `Runtime.subscribe`."""
        stream = await self._ask(run_ids)
        if stream != self._stream:
            self._stream, self._source = stream, None
        now = self._monotonic()
        # Those that nobody reads any more go at some time.
        self._asked_at = {
            run_id: at for run_id, at in self._asked_at.items() if now - at <= 2 * RENEW_S
        }
        self._asked_at.update(dict.fromkeys(run_ids, now))

    async def texts(self, run_id: str, cursor: TextCursor | None) -> Texts:
        """See `Runtime.texts`."""
        asked_at = self._asked_at.get(run_id)
        if asked_at is None or self._monotonic() - asked_at > RENEW_S:
            await self.subscribe([run_id])
        stream = self._stream
        at = None if cursor is None else cursor.at if cursor.stream == stream else BEFORE_ALL
        try:
            if self._source is None:
                self._source = await self._reach(stream)
            asked = self._monotonic()
            reading = await self._source.call(TextStreams.read, run_id, at)
        except (UnreachableError, ActorLostError):
            self._source = None
            self._asked_at.pop(run_id, None)
            await asyncio.sleep(AGAIN_S)
            return Texts(cursor=cursor)
        if not reading.spoken and self._monotonic() - asked < POLL_S / 2:
            # Too many wait there already.
            await asyncio.sleep(AGAIN_S)
        return Texts(
            cursor=TextCursor(stream, reading.cursor),
            spoken=reading.spoken,
            missed=reading.missed,
        )
