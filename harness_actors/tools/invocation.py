"""Calling a user's function: in a thread or not, a generator to its end, its result as a text."""

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from functools import partial
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.rendering import render_output
from harness_actors.tools.stopping import check_stopped, told_of_its_stop


async def invoke(
    function: Callable[..., Any], given: dict[str, Any], context: ToolContext, name: str
) -> str:
    """Call a function, and make a result of what it comes to.

    Of a generator each value is told to whoever reads along; its result is what it returns, or
    else the last value.

    Args:
        function: The function.
        given: Its arguments.
        context: Of the call.
        name: The tool's name, for messages.

    Raises:
        Exception: What the function raised.
        RuntimeError: It raised what would end the process.
    """
    call = partial(function, **given)
    with _EndingForks():
        return await _result_of(function, call, context, name)


async def _result_of(
    function: Callable[..., Any], call: Callable[[], Any], context: ToolContext, name: str
) -> str:
    try:
        if inspect.iscoroutinefunction(function):
            value = await call()
        elif inspect.isasyncgenfunction(function):
            value = call()
        else:
            with told_of_its_stop():
                value = await context.in_thread(_in_thread, call, context, name)
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, AsyncGenerator):
            value = await _last_of_async(value, context, name)
        elif isinstance(value, Generator):
            with told_of_its_stop():
                value = await context.in_thread(_last_of, value, context, name)
        return render_output(value, name)
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        # `sys.exit()` in a tool, or a panic of native code, must not end the actor.
        problem = f"{name!r} ended with {type(error).__name__}: {error}"
        raise RuntimeError(problem) from error


class _EndingForks:
    """End whichever process leaves this that did not enter it.

    A fork that a function comes back from would go on as its parent: answer for it, commit for
    it, and hold its sockets and locks when it is gone.
    """

    # No generator: each call passes here, and that takes twice as long.
    def __enter__(self) -> None:
        self._entered = os.getpid()

    def __exit__(self, *_: object) -> None:
        _end_fork_of(self._entered)


def _end_fork_of(entered: int) -> None:
    if os.getpid() != entered:
        os._exit(0)


def _in_thread(call: Callable[[], Any], context: ToolContext, name: str) -> Any:
    with _EndingForks():
        return _made_there(call, context, name)


def _made_there(call: Callable[[], Any], context: ToolContext, name: str) -> Any:
    try:
        value = call()
        if isinstance(value, Generator):
            value = _last_of(value, context, name)
        if inspect.isawaitable(value) or isinstance(value, AsyncGenerator):
            return value
        # Here, where it keeps nobody else waiting.
        return render_output(value, name)
    except (StopIteration, KeyboardInterrupt) as error:
        # A future cannot hold the one, and whoever waits for it would wait for ever; the
        # other, in a thread of the pool, is the tool's own and no Ctrl-C.
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _last_of(values: Generator[Any, None, Any], context: ToolContext, name: str) -> Any:
    last = None
    with _EndingForks(), closing(values):
        while True:
            try:
                last = next(values)
            except StopIteration as end:
                return last if end.value is None else end.value
            check_stopped()
            _tell(last, context, name)


async def _last_of_async(values: AsyncGenerator[Any], context: ToolContext, name: str) -> Any:
    last, entered = None, os.getpid()
    async with aclosing(values):
        async for value in values:
            _end_fork_of(entered)
            last = value
            _tell(last, context, name)
            # One that never waits would hold up everything else, and could not be stopped.
            await asyncio.sleep(0)
    return last


def _tell(value: Any, context: ToolContext, name: str) -> None:
    try:
        text = value if isinstance(value, str) else render_output(value, name)
    except ToolError:
        # It need not be sayable: only the last one is a result.
        return
    context.emit(text)
