"""An event loop whose clock stands still while there is work, and then jumps to the next timer."""

import asyncio
import selectors
from typing import Any


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Waits of any length take no time and are exact, however busy the machine is.

    For tests whose waits are all timers: work in another thread is not waited for.
    """

    def __init__(self) -> None:
        self._skipped_s = 0.0
        super().__init__(_NeverWaiting(self))

    def time(self) -> float:
        return self._skipped_s

    def skip(self, seconds: float) -> None:
        """Let time pass."""
        self._skipped_s += seconds


class _NeverWaiting(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._loop.skip(max(timeout, 0.0))
        return ready
