"""Resource keys that calls hold: who waits for one, and in which order they are given."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.05
"""How often it is looked at whether another process has let go of a key: seldom after a while."""
TURN_S = 1.0
"""How long a process gives a key from one to the next before it lets those of others look."""
ASIDE_S = 1.2 * LONGEST_PAUSE_S
"""Until each of them has looked."""

Place = tuple[str, str]
"""A key, behind the run at the top of its tree."""


class Held(Protocol):
    """A key that is held."""

    def release(self) -> None: ...


class Keys(Protocol):
    """Keys that all processes share."""

    def take(self, root: str, key: str, *, reads: bool) -> Held | None:
        """Hold a key of a tree at once, or not at all; see `KeyFiles.take`."""
        ...


@dataclass(eq=False, slots=True)
class _Queue:
    """Those of this process who hold a key, and who wait for it; the first of these alone looks
    for it.

    Attributes:
        now: Time, in seconds.
        first: Held by the first who waits.
        freed: Somebody of this process has let go of the key.
        users: How many hold it or wait for it.
        waiting: How many of them wait.
        since: Since when it has been given from one to the next in this process; None for nobody.
        aside: The next one lets those of other processes look first.
    """

    now: Callable[[], float]
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    users: int = 0
    waiting: int = 0
    since: float | None = None
    aside: bool = False


class KeyLocks:
    """Answers `ResourceLocks` for one process.

    In a process keys are given in the order in which they are asked for, so that those who read
    cannot keep one who writes waiting forever. Of several processes, who looks first has it; one
    that has had a key for `TURN_S` lets the others look.

    Args:
        keys: What all processes share.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._queues: dict[Place, _Queue] = {}

    def held(self, root: str, keys: Collection[str], *, reads: bool) -> "_Holding":
        """See `ResourceLocks.held`."""
        # Everybody in the same order: so nobody waits for one who waits for them.
        return _Holding(self, [(root, key) for key in sorted(set(keys))], reads)

    async def take(self, place: Place, *, reads: bool) -> Held:
        """Hold a key, when it is free and those before have had it."""
        if (queue := self._queues.get(place)) is None:
            queue = self._queues[place] = _Queue(asyncio.get_running_loop().time)
        queue.users += 1
        try:
            held = None if queue.waiting else self._keys.take(*place, reads=reads)
            if held is None:
                held = await self._in_turn(place, reads, queue)
        except BaseException:
            self._leave(place, queue)
            raise
        if queue.since is None:
            queue.since = queue.now()
        return held

    def let_go(self, place: Place, held: Held) -> None:
        """Hold it no more; who is next in this process is told."""
        held.release()
        queue = self._queues[place]
        queue.aside = queue.since is not None and queue.now() - queue.since > TURN_S
        queue.freed.set()
        self._leave(place, queue)

    def _leave(self, place: Place, queue: _Queue) -> None:
        queue.users -= 1
        if not queue.users:
            del self._queues[place]

    async def _in_turn(self, place: Place, reads: bool, queue: _Queue) -> Held:
        queue.waiting += 1
        try:
            async with queue.first:
                return await self._when_free(place, reads, queue)
        finally:
            queue.waiting -= 1

    async def _when_free(self, place: Place, reads: bool, queue: _Queue) -> Held:
        pause_s = FIRST_PAUSE_S
        while True:
            if queue.aside:
                # They look seldom, and would not find it free as long as somebody waits here.
                queue.aside, queue.since = False, None
                await asyncio.sleep(ASIDE_S)
            if (held := self._keys.take(*place, reads=reads)) is not None:
                return held
            queue.freed.clear()
            timer = asyncio.get_running_loop().call_later(pause_s, queue.freed.set)
            try:
                await queue.freed.wait()
            finally:
                timer.cancel()
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@dataclass(eq=False, slots=True)
class _Holding:
    """Keys of a call, held from its beginning to its end."""

    _locks: KeyLocks
    _places: Sequence[Place]
    _reads: bool
    _taken: list[Held] = field(default_factory=list)

    async def __aenter__(self) -> None:
        try:
            for place in self._places:
                self._taken.append(await self._locks.take(place, reads=self._reads))
        except BaseException:
            self._let_go()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        for place, held in zip(self._places, self._taken, strict=False):
            self._locks.let_go(place, held)
        self._taken.clear()
