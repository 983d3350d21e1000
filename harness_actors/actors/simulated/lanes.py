"""The processes of a simulated loop, as queues of steps."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class ProcessDiedError(BaseException):
    """The process of this step is gone; the rest of the step does not happen."""


class Lane:
    """The steps of one process, in their order.

    Steps of one process run in the order in which asyncio would run them; between those
    of several there is no order, and the loop chooses.
    """

    __slots__ = ("blocked", "context", "gone", "ready", "running", "stopped")

    def __init__(self) -> None:
        self.ready: deque[Due] = deque()
        self.running = False
        """It is in the loop's list of lanes that have something to do."""
        self.stopped = False
        self.blocked = False
        """It is in the middle of a step that waits for others."""
        self.gone = False
        self.context = Context()
        self.context.run(LANE.set, self)


LANE: ContextVar[Lane] = ContextVar("lane")
"""Whose step this is. Tasks inherit it, so whatever a process begins belongs to it."""


class Due(asyncio.TimerHandle):
    """Something to be called, by and for one process."""

    __slots__ = ("args", "callback", "context", "dropped", "lane")

    # Not the constructor of `TimerHandle`: of it nothing is needed but the type.
    def __init__(self, callback: Callable[..., object], args: Any, context: Context) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        self.dropped = False

    def cancel(self) -> None:
        self.dropped = True
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.dropped


class NumberedTask(asyncio.Task[T]):
    """A task whose place in a set does not depend on where it is in memory."""

    number = 0

    def __hash__(self) -> int:
        return self.number
