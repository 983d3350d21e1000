"""Waits on rate limits, told while they last: they are no working time of a run, and its user may
have had enough of them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class NotAskedAgainError(Exception):
    """A wait was given up: the provider is not asked again, for the run is to stop."""


class WaitMeter:
    """Adds up the waits of one model call, in seconds of the event loop's time."""

    def __init__(self) -> None:
        self._ended_s = 0.0
        self._waiting = 0
        self._since = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._given_up = False

    @property
    def waited_s(self) -> float:
        """All waits so far, the one in progress included."""
        running = _now() - self._since if self._waiting else 0.0
        return self._ended_s + running

    @property
    def is_waiting(self) -> bool:
        return self._waiting > 0

    def begin(self) -> None:
        """A wait begins. Waits of one call at once count as one.

        Raises:
            NotAskedAgainError: They are given up.
        """
        if self._given_up:
            raise NotAskedAgainError
        if not self._waiting:
            self._since = _now()
        self._waiting += 1

    def end(self) -> None:
        """A wait is over."""
        self._waiting -= 1
        if not self._waiting:
            self._ended_s += _now() - self._since

    def give_up(self) -> None:
        """End the waits in progress, and let none begin: each raises `NotAskedAgainError`."""
        self._given_up = True
        for task in self._tasks:
            task.cancel()

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """A wait of the current task, which ends early where it is given up.

        Raises:
            NotAskedAgainError: It was.
        """
        task = asyncio.current_task()
        assert task is not None, "a model waits in a task"
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # Unless somebody else has cancelled it, too.
            if self._given_up and task.uncancel() == 0:
                raise NotAskedAgainError from None
            raise
        finally:
            self._tasks.discard(task)


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
        with meter.heeding():
            yield
    finally:
        meter.end()


def _now() -> float:
    return asyncio.get_running_loop().time()
