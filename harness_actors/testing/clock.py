"""A clock that moves when it is told to."""

import asyncio
import heapq
from itertools import count


class ManualClock:
    """Answers the `Clock` port. Nothing passes by itself: `advance` moves it.

    Args:
        start: What `now` says at first, in seconds since the epoch.

    >>> clock = ManualClock(start=100.0)
    >>> clock.advance(2.5)
    >>> clock.now(), clock.monotonic()
    (102.5, 2.5)
    """

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._start = start
        self._passed = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._went_to_sleep = asyncio.Event()

    def now(self) -> float:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), wake))
        self._went_to_sleep.set()
        await wake

    @property
    def sleeping(self) -> int:
        """How many sleep now."""
        return sum(not wake.done() for _, _, wake in self._sleepers)

    async def until_sleeping(self, sleepers: int = 1) -> None:
        """Wait until at least that many sleep, so that `advance` finds them."""
        while self.sleeping < sleepers:
            self._went_to_sleep.clear()
            await self._went_to_sleep.wait()

    def advance(self, seconds: float) -> None:
        """Let time pass and wake those whose time has come, the earliest first.

        They go on when the caller next awaits something.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"time does not pass backwards: {seconds}")
        self._passed += seconds
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            _, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():
                wake.set_result(None)
