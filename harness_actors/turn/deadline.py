"""Work that must end in time: told to when it is over, and left alone if it does not."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from harness_actors.models.waits import WaitMeter
from harness_actors.turn.bounds import Due

logger = logging.getLogger(__name__)

GRACE_S = 0.3
"""How long work may take to end when it is told to."""
STANDSTILL_S = 0.05
"""How often it is looked at whether working time passes again."""

_LEFT: set[asyncio.Task[Any]] = set()
"""What was left alone: the event loop itself does not hold on to its tasks."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The work ended in time, or while it was told to end."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The work raised in time, or while it was told to end; never the caller's cancellation."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The work ran past its time.

    Attributes:
        due: Which bound it reached.
        left: It has not ended, and was left alone.
        last: What it raised when it was told to end; None where it only ended.
    """

    due: Due
    left: bool
    last: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How long a piece of work may take.

    Attributes:
        wall: By the wall clock, or a limit of its own.
        working_s: Seconds of work, waits on rate limits left out; None for no bound.
        meter: Where these waits are told.
    """

    wall: Due
    working_s: float | None = None
    meter: WaitMeter | None = None

    def left(self, passed_s: float) -> Due:
        """What is left after so many seconds; the bound that is reached first."""
        wall_s = None if self.wall.seconds is None else self.wall.seconds - passed_s
        if self.working_s is None:
            return Due(wall_s, self.wall.kind)
        waited_s = 0.0 if self.meter is None else self.meter.waited_s
        work_s = self.working_s - (passed_s - waited_s)
        if wall_s is not None and wall_s <= work_s:
            return Due(wall_s, self.wall.kind)
        return Due(work_s, "working_time")


async def run_within(
    allowance: Allowance,
    name: str,
    begin: Callable[[], Awaitable[Any]],
    *,
    stopping: Callable[[Due], None] = lambda _due: None,
) -> Returned | Raised | TimedOut:
    """Do a piece of work within its time.

    It runs in a task of its own. When its time is up, or the caller is cancelled, it is
    cancelled; if it has not ended `GRACE_S` later, it is left alone, and whatever comes
    of it is dropped.

    Args:
        allowance: How long it may take.
        name: What it is, for the log.
        begin: Begins it.
        stopping: Called before it is told to end: with the bound that it reached, or with one of
            no seconds where the caller was cancelled.

    Raises:
        CancelledError: The caller was cancelled.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(_caught(begin))
    began = loop.time()
    try:
        if not allowance.left(0.0).over:
            # What need not wait has ended by then, and costs no timer.
            await asyncio.sleep(0)
        while not task.done():
            due = allowance.left(loop.time() - began)
            if due.over:
                stopping(due)
                return await _stopped(task, name, due)
            # Working time may stand still, so that more of it is left than it seems.
            pause_s = due.seconds
            if pause_s is not None and due.kind == "working_time":
                pause_s = max(pause_s, STANDSTILL_S)
            await asyncio.wait((task,), timeout=pause_s)
    except asyncio.CancelledError:
        if not task.done():
            stopping(Due(None))
            await _stopped(task, name, Due(None))
        raise
    return task.result()


async def _stopped(
    task: "asyncio.Task[Returned | Raised]", name: str, due: Due
) -> Returned | Raised | TimedOut:
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=GRACE_S)
    finally:
        # Also where the caller is cancelled a second time meanwhile.
        if not task.done():
            _LEFT.add(task)
            task.add_done_callback(_LEFT.discard)
    if not task.done():
        logger.warning("%s does not end, and is left alone", name)
        return TimedOut(due, left=True)
    if task.cancelled():
        return TimedOut(due, left=False)
    match task.result():
        case Raised(error):
            return TimedOut(due, left=False, last=error)
        case returned:
            # It was done when it was told to end, and a call that was made must not look
            # as if it was not.
            return returned


async def _caught(begin: Callable[[], Awaitable[Any]]) -> Returned | Raised:
    # As a value: an event loop is ended by a `SystemExit` that a task raises.
    try:
        return Returned(await begin())
    except BaseException as error:  # noqa: BLE001 - whoever asked decides about each
        return Raised(error)
