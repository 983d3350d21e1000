"""The one thread that connects this process to Ray and disconnects it, one thing at a time."""

import asyncio
import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class StarterThread:
    """A queue of things to do, done in one thread in the order in which they came.

    A pool's threads are waited for at the end of the process, and ``ray.init()`` cannot be broken
    off: this one is waited for only as long as somebody needs what it does.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._needed: set[Future[Any]] = set()
        self._starting = threading.Lock()
        self._is_started = False

    def submit(self, do: Callable[..., T], *arguments: object) -> "Future[T]":
        """Do this after what was submitted before."""
        done: Future[T] = Future()
        with self._starting:
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._work, name="ray-starter", daemon=True).start()
                # After Ray has registered its own, so before Ray is shut down.
                atexit.register(self._finish)
            self._needed.add(done)
        self._queue.put((done, lambda: do(*arguments)))
        return done

    def give_up(self, done: "Future[Any]") -> None:
        """Nobody needs this any more: it is not begun, or the process ends without it."""
        done.cancel()
        self._needed.discard(done)

    def _work(self) -> None:
        while True:
            done, do = self._queue.get()
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(do())
                except BaseException as error:  # noqa: BLE001 - whoever waits raises it
                    done.set_exception(error)
            self._needed.discard(done)
            del done, do

    def _finish(self) -> None:
        wait(tuple(self._needed))


STARTER_THREAD = StarterThread()


async def on_starter_thread(do: Callable[..., T], *arguments: object, is_needed: bool = True) -> T:
    """Do there what blocks for seconds, as ``ray.init()`` does; a loop with other work must not.

    Args:
        do: What to do.
        arguments: Its arguments.
        is_needed: The process waits for it at its end, even if the caller is cancelled.
    """
    done = STARTER_THREAD.submit(do, *arguments)
    try:
        return await asyncio.wrap_future(done)
    except asyncio.CancelledError:
        if not is_needed:
            STARTER_THREAD.give_up(done)
        raise
