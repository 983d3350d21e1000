"""An event loop in which time is a number, and processes are queues of steps."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from heapq import heappush
from random import Random
from typing import Any, Protocol, TypeVar

from harness_actors.actors.simulated.lanes import LANE, Due, NumberedTask
from harness_actors.actors.simulated.steps import Steps

T = TypeVar("T")


class Pauses(Protocol):
    """How long a blocking call takes, in seconds."""

    def before(self) -> float:
        """Until it is done."""
        ...

    def after(self) -> float:
        """From then until its caller hears of it."""
        ...


class SimulatedLoop(Steps, asyncio.BaseEventLoop):
    """Runs many processes in one thread on a time of its own.

    The same seed gives the same order of all steps. When a process is gone, its steps are
    dropped, whatever it awaited.

    Args:
        chance: Chooses whose step is next.
        pauses: How long blocking calls take.
    """

    def __init__(self, chance: Random, pauses: Pauses) -> None:
        asyncio.BaseEventLoop.__init__(self)
        Steps.__init__(self, chance)
        self._pauses = pauses
        self._numbers = 0
        self._tasks: list[NumberedTask[Any]] = []
        self._threads: dict[object, tuple[float, float]] = {}

    # ---- what asyncio asks of a loop ------------------------------------------------

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Due:
        if context is None:
            context = copy_context()
        due = Due(callback, args, context)
        self._enqueue(context[LANE], due)
        return due

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Due:
        if context is None:
            context = copy_context()
        due = Due(callback, args, context)
        self._numbers += 1
        heappush(self._timers, (when, self._numbers, context[LANE], due))
        return due

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Due:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = NumberedTask(coro, loop=self, name=name, context=context)
        # asyncio's list of all tasks is a set, too, and would get those of all schedules.
        asyncio.tasks._unregister_task(task)
        task.number = len(self._tasks)
        # A task of a process that is killed is dropped without a word, but not before the
        # end: its `finally` blocks would run in the middle of another process's step.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call a blocking function as a step of its own, a little later.

        An executor that is named is taken for one thread: its calls are done in order.
        """
        future: asyncio.Future[T] = self.create_future()
        done = self._now + self._pauses.before()
        told = done + self._pauses.after()
        if executor is not None:
            last_done, last_told = self._threads.get(executor, (0.0, 0.0))
            done = max(done, last_done)
            told = max(told, done, last_told)
            self._threads[executor] = (done, told)
        context = LANE.get().context
        self.call_at(done, self._block, future, told, func, args, context=context)
        return future

    def _block(
        self, future: asyncio.Future[T], told: float, func: Callable[..., T], args: Any
    ) -> None:
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - whatever it raises is told to its caller
            self.call_at(told, _fail, future, error)
            return
        self.call_at(told, _succeed, future, result)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.faults.append(error)

    # ---- running --------------------------------------------------------------------

    def run_world(self, main: Coroutine[Any, Any, T]) -> T | None:
        """Run until `main`, which belongs to no process, is done; None where it was halted.

        Raises:
            EndlessScheduleError: It is not done, and never will be.
        """
        asyncio._set_running_loop(self)
        try:
            task = self.world.context.run(self.create_task, main)
            self._run(task.done)
            return None if self.halted and not task.done() else task.result()
        finally:
            asyncio._set_running_loop(None)

    def unseen_failures(self) -> list[BaseException]:
        """Exceptions that ended a task, and that nobody has looked at."""
        tasks = (task._exception for task in self._tasks if task._log_traceback)
        return [*self.faults, *(error for error in tasks if error is not None)]

    def dispose(self) -> None:
        """End what is left. Nothing that it does on its way out reaches anything."""
        self.end_lane(self.world)
        self._timers.clear()
        self._lanes.clear()
        for task in self._tasks:
            if not task.done():
                _close(task)
            elif task._log_traceback:
                # Looked at, as far as asyncio is concerned.
                task.exception()
        self._tasks.clear()
        self._closed = True


def _close(task: "asyncio.Task[Any]") -> None:
    coroutine = task.get_coro()
    try:
        if coroutine is not None:
            coroutine.close()
    except (Exception, asyncio.CancelledError):  # noqa: BLE001
        # It awaits on its way out, which a dead process does not.
        return


def _succeed(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
