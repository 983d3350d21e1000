"""Waits on rate limits, told while they last: they are no working time of a run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WaitMeter:
    """Adds up the waits of one model call, in seconds of the event loop's time."""

    def __init__(self) -> None:
        self._ended_s = 0.0
        self._waiting = 0
        self._since = 0.0

    @property
    def waited_s(self) -> float:
        """All waits until now, that in progress included."""
        running = _now() - self._since if self._waiting else 0.0
        return self._ended_s + running

    @property
    def is_waiting(self) -> bool:
        return self._waiting > 0

    def begin(self) -> None:
        """A wait begins. Waits of one call at once count as one."""
        if not self._waiting:
            self._since = _now()
        self._waiting += 1

    def end(self) -> None:
        """A wait is over."""
        self._waiting -= 1
        if not self._waiting:
            self._ended_s += _now() - self._since


_METER: ContextVar[WaitMeter | None] = ContextVar("wait_meter", default=None)


@contextmanager
def metered() -> Iterator[WaitMeter]:
    """Measure the waits of a model call that is begun inside, also those in its tasks."""
    meter = WaitMeter()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """To be put by a model around each wait until it may ask again.

    The working time of a run stands still meanwhile. Without it, a wait counts as work
    until the answer says in its `waited_s` that it was none.
    """
    meter = _METER.get()
    if meter is None:
        yield
        return
    meter.begin()
    try:
        yield
    finally:
        meter.end()


def _now() -> float:
    return asyncio.get_running_loop().time()
