"""Ctrl-C, step by step: first in good order, then at once."""

import asyncio
import signal
from collections.abc import Callable
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Does the first step when the user interrupts, the next at the next time.

    After the last one an interrupt does what it does in any program. Used as a context
    manager in a running event loop.

    Args:
        steps: What to do, called in the event loop.
    """

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.arm()
        return self

    def __exit__(self, *_: object) -> None:
        self._disarm()

    def arm(self) -> None:
        """Take the signals; again when a library may have taken them, as Ray does SIGTERM."""
        if self._steps:
            for number in SIGNALS:
                self._loop.add_signal_handler(number, self._interrupted)

    def _interrupted(self) -> None:
        step = self._steps.pop(0)
        if not self._steps:
            self._disarm()
        step()

    def _disarm(self) -> None:
        for number in SIGNALS:
            self._loop.remove_signal_handler(number)
