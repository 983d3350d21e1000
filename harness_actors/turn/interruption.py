"""Whose a `KeyboardInterrupt` is: the user's, or one that a tool or a model raised itself."""

import signal
from collections.abc import Iterator
from functools import partial
from threading import current_thread, main_thread
from types import CodeType


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an exception is the user's Ctrl-C.

    Python's own handler leaves no trace in what it raises, so that where it stands any
    `KeyboardInterrupt` of the main thread is taken for the user's. Any other handler, such as
    that of `asyncio.run`, is a function, and is among those that raised it.
    """
    if not isinstance(error, KeyboardInterrupt) or current_thread() is not main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        return True
    code = _code_of(handler)
    return code is not None and code in _codes(error)


def _code_of(handler: object) -> CodeType | None:
    """What a handler runs; None for one that is not written in Python, and raises nothing."""
    while isinstance(handler, partial):
        handler = handler.func
    method = getattr(type(handler), "__call__", None)  # noqa: B004 - for what it runs
    for function in (handler, method):
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            return code
    return None


def _codes(error: BaseException) -> Iterator[CodeType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next
