"""Tells people how far many schedules are."""

import time
from collections.abc import Callable
from typing import TextIO

LINE_EVERY_S = 30.0
"""How often a line is printed where there is no terminal."""


class Progress:
    """Writes how many are done, how fast that is, and when it will be all of them.

    On a terminal it is one line that changes; elsewhere a line now and then.

    Args:
        name: What is done.
        total: How many there are.
        out: Where to.
        clock: Seconds.
    """

    def __init__(
        self,
        name: str,
        total: int,
        out: TextIO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._total = total
        self._out = out
        self._clock = clock
        self._begun = self._told = clock()
        self._changes = out.isatty()

    def __call__(self, done: int) -> None:
        """So many are done."""
        now = self._clock()
        if self._changes:
            self._out.write(f"\r\x1b[K{self._line(done, now)}")
            self._out.flush()
        elif now - self._told >= LINE_EVERY_S:
            self._told = now
            self._out.write(f"{self._line(done, now)}\n")
            self._out.flush()

    def end(self) -> None:
        """Make room for what is printed next."""
        if self._changes:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _line(self, done: int, now: float) -> str:
        per_second = done / max(now - self._begun, 1e-9)
        left = round((self._total - done) / max(per_second, 1e-9))
        return (
            f"{self._name}: {done} of {self._total} schedules, {per_second:.0f} per second, "
            f"{left // 60}:{left % 60:02} left"
        )
