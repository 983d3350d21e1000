"""The threads that blocking tools run in: a number of them, and none is ever killed."""

import asyncio
import weakref
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import Any

from harness_actors.errors import ToolError

LONGEST_WAIT_S = 60.0
"""How long a call waits where every thread is held by a call that does not return."""

_Job = Callable[[], None]


class ToolThreads:
    """Runs blocking functions in threads of its own.

    Python cannot end a thread. A call that is cancelled while its function runs leaves it
    alone: what it returns is dropped, and its thread is taken until then. The others wait
    for one that is free. Threads that do not return keep no process from ending.

    Args:
        size: Threads at most, at least 1; they are started when they are needed.
        longest_wait_s: How long a call waits where every thread is held by one that was
            cancelled, in seconds.

    Attributes:
        held: Threads taken by calls that were cancelled and have not returned.
    """

    def __init__(self, size: int, *, longest_wait_s: float = LONGEST_WAIT_S) -> None:
        self.held = 0
        self._size = size
        self._longest_wait_s = longest_wait_s
        self._slots = asyncio.Semaphore(size)
        self._taken = 0
        self._started = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        weakref.finalize(self, self._jobs.put, None).atexit = False

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function in a thread, when there is one, with the context of the caller.

        Returns:
            What it returns.

        Raises:
            ToolError: All threads are held by calls that do not return.
            Exception: What the function raises.
        """
        await self._take_slot()
        self._taken += 1
        if self._taken > self._started:
            self._start_thread()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        call = partial(copy_context().run, function, *args, **kwargs)
        self._jobs.put(partial(_do, call, loop, self._done, future))
        try:
            return await future
        except asyncio.CancelledError as cancelled:
            if future.cancelled():
                self.held += 1
                cancelled.add_note("Its thread cannot be stopped: what it began may still happen.")
            raise
        finally:
            # An error in it knows this frame: a circle, in which all that its frames hold would
            # stay for the collector of garbage.
            del future

    async def _take_slot(self) -> None:
        try:
            while True:
                try:
                    async with asyncio.timeout(self._longest_wait_s):
                        await self._slots.acquire()
                    return
                except TimeoutError:
                    # Threads that are only busy become free.
                    if self.held == self._size:
                        raise ToolError(self._why_not()) from None
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(self._why_not())
            raise

    def _why_not(self) -> str:
        return (
            f"It has not begun: all {self._size} threads for blocking tools are taken, "
            f"{self.held} of them held by calls that were stopped and do not return."
        )

    def _start_thread(self) -> None:
        self._started += 1
        # A daemon: an interpreter waits at its end for all others.
        thread = Thread(
            target=_work, args=(self._jobs,), name=f"tool-{next(_NUMBERS)}", daemon=True
        )
        # It serves other callers, too.
        Context().run(thread.start)

    def _done(self, future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
        self._taken -= 1
        self._slots.release()
        if future.cancelled():
            self.held -= 1
        elif error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration | KeyboardInterrupt | SystemExit):
            # A future cannot hold the first; the others would end the event loop.
            told = RuntimeError(f"{type(error).__name__}: {error}")
            told.__cause__ = error
            future.set_exception(told)
        else:
            future.set_exception(error)


_NUMBERS = count(1)


def _work(jobs: "SimpleQueue[_Job | None]") -> None:
    while (job := jobs.get()) is not None:
        job()
        # What it returned must not stay until the next one comes.
        del job
    jobs.put(None)  # for the next thread


def _do(
    call: Callable[[], Any],
    loop: asyncio.AbstractEventLoop,
    done: Callable[["asyncio.Future[Any]", Any, BaseException | None], None],
    future: "asyncio.Future[Any]",
) -> None:
    value, error = None, None
    try:
        value = call()
    except BaseException as raised:  # noqa: BLE001 - told to whoever waits
        error = raised
    try:
        loop.call_soon_threadsafe(done, future, value, error)
    except RuntimeError:
        return  # the loop is closed: nobody waits for anything any more
    finally:
        del error, future  # which know this frame, as in `ToolThreads.run`
