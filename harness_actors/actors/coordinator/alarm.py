"""Rings when a time has come."""

import asyncio
from collections.abc import Callable

from harness_actors.ports import Clock

SHORTEST_S = 0.01
"""Clocks differ a little; one that rang too early is set again, and must not spin."""


class Alarm:
    """Calls somebody at a time that may be moved.

    Args:
        clock: Whose time it is.
        ring: Called when the time has come; the alarm is not set any more then.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float | None) -> None:
        """Ring at `at`, in seconds since the epoch, and not when it was to before; None: never."""
        if at == self._at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at, self._timer = at, None
        if at is not None:
            delay_s = max(SHORTEST_S, at - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._rung)

    def _rung(self) -> None:
        self._at = self._timer = None
        self._ring()
