"""Whether the call that a thread works for was stopped: a thread can only end by itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness_actors.errors import ToolError


class _Call:
    """A call at work."""

    __slots__ = ("stopped",)

    def __init__(self) -> None:
        self.stopped = False


_CALL: ContextVar[_Call | None] = ContextVar("tool_call", default=None)


@contextmanager
def told_of_its_stop() -> Iterator[None]:
    """Let what runs inside know, in its threads too, when the caller was cancelled."""
    call = _Call()
    token = _CALL.set(call)
    try:
        yield
    except asyncio.CancelledError:
        call.stopped = True
        raise
    finally:
        _CALL.reset(token)


def check_stopped() -> None:
    """Return if somebody still waits for the call.

    Raises:
        ToolError: It was stopped, so that whatever comes of it is dropped.
    """
    call = _CALL.get()
    if call is not None and call.stopped:
        raise ToolError("the call was stopped")
