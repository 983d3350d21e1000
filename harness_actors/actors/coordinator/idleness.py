"""How long a cell has had nothing to do, and when it therefore stops."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ABANDONED_S = 30.0
"""How long a cell stays idle that was to stop with its command, and whose command was killed; and
how long one waits at least for its first call."""
TICKS = 10
LONGEST_TICK_S = 1.0


class Idleness:
    """Counts for how long a cell has had no run in progress and no call.

    Whoever waits for news makes no call in this sense: news come from runs.

    Args:
        in_progress: How many runs are in progress.
        committed: The newest position of the journal: it moves where anything was done.
        idle_s: When it is over, in seconds; None for never.
        monotonic: The time.
    """

    def __init__(
        self,
        in_progress: Callable[[], int],
        committed: Callable[[], int],
        idle_s: float | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._in_progress = in_progress
        self._committed = committed
        self._monotonic = monotonic
        self._calls = 0
        self._called = False
        self._seen = committed()
        self._since = monotonic()
        self.idle_s = idle_s

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """A call is made meanwhile."""
        self._calls += 1
        self._called = True
        try:
            yield
        finally:
            self._calls -= 1
            self._since = self._monotonic()

    @property
    def lasts_s(self) -> float:
        """For how long there has been nothing to do; 0 while there is something."""
        committed = self._committed()
        if self._calls or self._in_progress() or committed != self._seen:
            self._seen = committed
            self._since = self._monotonic()
        return self._monotonic() - self._since

    @property
    def since(self) -> float:
        """When there was something to do last; now, while there is."""
        _ = self.lasts_s
        return self._since

    @property
    def left_s(self) -> float | None:
        """When it is over if nothing happens, in seconds from now; None for never."""
        if self.idle_s is None:
            return None
        allowed_s = self.idle_s or ABANDONED_S
        if not self._called:
            # Whoever started it may take its time on a busy machine.
            allowed_s = max(allowed_s, ABANDONED_S)
        return max(0.0, allowed_s - self.lasts_s)

    async def until_over(self) -> None:
        """Return when it has lasted for too long."""
        while (left_s := self.left_s) is None or left_s > 0:
            # Looked at often enough that what happens between two looks shows in the journal.
            tick_s = LONGEST_TICK_S if left_s is None else max(0.01, left_s / TICKS)
            await asyncio.sleep(min(LONGEST_TICK_S, tick_s))
