"""Ctrl-C in a program of the user's own: rounds in flight are finished before it is heeded."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from threading import current_thread, main_thread
from types import FrameType
from typing import Self

logger = logging.getLogger(__name__)

PASSED_ON_WITHIN_S = 1.0
"""A task that was cancelled at the top hears of it in some passes of the event loop."""

Handler = partial[None]
"""That of `asyncio.run`: it cancels the main task, and raises from the second time on."""


class Interruptible:
    """Work in progress that Ctrl-C puts aside in good order.

    Under `asyncio.run`, the first Ctrl-C cancels the main task, and with it whatever that
    waits for. Where such work is in progress, used as a context manager, that waits until all
    of it is over or put aside; a second Ctrl-C does it at once. Nothing is changed in a thread,
    without `asyncio.run`, or where the program handles the signal itself.

    Args:
        park: Asks the work to stop when its rounds are done.
    """

    def __init__(self, park: Callable[[], Awaitable[None]]) -> None:
        self.park = park
        self._guard: _Guard | None = None

    def __enter__(self) -> Self:
        self._guard = _guard()
        if self._guard is not None:
            self._guard.join(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._guard is not None:
            self._guard.leave(self)

    async def passed_on(self) -> None:
        """Wait for the Ctrl-C by which the work was put aside; returns if it was by none.

        Raises:
            asyncio.CancelledError: It has come to whoever waits for the work.
        """
        if self._guard is not None and self._guard.interrupted:
            await asyncio.wait({self._guard.heeded})
            # Unless the program does not pass it on to this task.
            await asyncio.sleep(PASSED_ON_WITHIN_S)


class _Guard:
    """Stands before the handler of an `asyncio.run` while work is in progress there."""

    def __init__(self, handler: Handler) -> None:
        self.works: set[Interruptible] = set()
        self.interrupted = False
        self._loop = asyncio.get_running_loop()
        self.heeded: asyncio.Future[None] = self._loop.create_future()
        self._handler = handler
        self._is_passed_on = False
        self._parking: set[asyncio.Future[None]] = set()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take the signal; between any two steps of whatever is at work."""
        if self.interrupted or not self.works:
            self._is_passed_on = True
            self._handler(number, frame)
            return
        self.interrupted = True
        self._loop.call_soon_threadsafe(self._park)

    def join(self, work: Interruptible) -> None:
        """Work begins; where Ctrl-C was pressed before, it is put aside like the others."""
        self.works.add(work)
        if self.interrupted:
            self._ask(work)

    def leave(self, work: Interruptible) -> None:
        """Work is over, or put aside."""
        self.works.discard(work)
        if not self.works:
            self._step_aside()
            self._heed()

    def _park(self) -> None:
        logger.warning("stopping after this round; press Ctrl-C again to leave at once")
        for work in self.works:
            self._ask(work)
        if not self.works:
            self._heed()

    def _ask(self, work: Interruptible) -> None:
        parking = asyncio.ensure_future(work.park())
        self._parking.add(parking)
        parking.add_done_callback(self._parked)

    def _parked(self, parking: asyncio.Future[None]) -> None:
        self._parking.discard(parking)
        if not parking.cancelled() and parking.exception() is not None:
            # What serves the work is gone: nobody finishes a round.
            self._heed()

    def _heed(self) -> None:
        if self.interrupted and not self.heeded.done():
            self.heeded.set_result(None)
            # Once: told again, `asyncio.run` leaves in the middle, and the rounds uncut.
            if not self._is_passed_on:
                self._handler(signal.SIGINT, None)

    def _step_aside(self) -> None:
        stands_there = signal.getsignal(signal.SIGINT) is self
        if stands_there:
            over = self._handler.keywords["main_task"].done()
            # As `asyncio.run` does at its end, if it finds its own handler there.
            signal.signal(signal.SIGINT, signal.default_int_handler if over else self._handler)


def _guard() -> _Guard | None:
    """What stands before the handler of the `asyncio.run` that is at work; None without one."""
    if current_thread() is not main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Guard):
        return handler
    runner = getattr(getattr(handler, "func", None), "__self__", None)
    if not isinstance(handler, partial) or not isinstance(runner, asyncio.Runner):
        return None
    guard = _Guard(handler)
    signal.signal(signal.SIGINT, guard)
    return guard
