"""Predicates of users: functions, known by names."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomQuestion:
    """What a function is told that answers for a `Custom` predicate.

    Attributes:
        workspace: The folder of the run; None for none.
        answer: The agent's last answer; None where nobody ran.
        arguments: Those of the predicate.
        attempt: Which attempt at the end this is, from 1.
    """

    workspace: Path | None
    answer: str | None
    arguments: Mapping[str, Any]
    attempt: int


@dataclass(frozen=True, slots=True)
class CustomAnswer:
    """What such a function may answer in place of true or false.

    Attributes:
        met: Whether it is so.
        why: What is missing, or what shows it; for the model.
    """

    met: bool
    why: str = ""


CustomPredicate = Callable[[CustomQuestion], Any]
"""Answers with true, false or a `CustomAnswer`; `async` or not. It must keep nothing in memory:
the next question may come in another process."""
InThread = Callable[..., Awaitable[Any]]


async def in_own_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a blocking function in a thread that nobody waits for when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        settle: Callable[[], None]
        try:
            settle = partial(_settle, done, function(*arguments), None)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            settle = partial(_settle, done, None, error)
        # Where the loop is closed, nobody waits for it any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="harness-predicate", daemon=True).start()
    return await done


async def ask_custom(function: CustomPredicate, question: CustomQuestion, thread: InThread) -> Any:
    """What a function answers, whatever that is.

    Where the caller is cancelled this returns at once, also if the function does not hear of it.
    """
    asked = asyncio.ensure_future(_asked(function, question, thread))
    try:
        await asyncio.wait((asked,))
    finally:
        asked.cancel()
    value, error = asked.result()
    if error is not None:
        raise error
    return value


async def _asked(
    function: CustomPredicate, question: CustomQuestion, thread: InThread
) -> tuple[Any, Exception | None]:
    """What it answers, or its error: asyncio complains of one that a task ends with, where
    nobody waits for it any more."""
    try:
        return await _called(function, question, thread), None
    except SystemExit as error:
        # In a task it would end the event loop.
        return None, RuntimeError(f"SystemExit: {error}")
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Its own, such as that of a task which it has cancelled: nobody cancels the run.
        return None, RuntimeError(f"CancelledError: {error}")
    except Exception as error:  # noqa: BLE001 - raised by whoever waits for it
        return None, error


async def _called(function: CustomPredicate, question: CustomQuestion, thread: InThread) -> Any:
    called = getattr(type(function), "__call__", None)  # noqa: B004 - it is looked at
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(question)
    value = await thread(function, question)
    return await value if inspect.isawaitable(value) else value


def _settle(done: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(value)
    elif isinstance(error, StopIteration | KeyboardInterrupt | SystemExit):
        # No future can hold the first, and the others are the function's own and no Ctrl-C.
        done.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
    else:
        done.set_exception(error)
