"""A function that runs in a thread learns that its call was stopped."""

import asyncio
import threading

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool
from harness_actors.tools.stopping import check_stopped


async def test_a_thread_ends_once_its_call_is_stopped(context: ToolContext) -> None:
    began, ended = threading.Event(), threading.Event()

    @tool
    def goes_on() -> None:
        """Go on until it is stopped."""
        began.set()
        try:
            while True:
                check_stopped()
        except ToolError:
            ended.set()

    call = asyncio.create_task(goes_on.run("{}", context))
    assert await asyncio.to_thread(began.wait, 30)
    call.cancel()
    assert await asyncio.to_thread(ended.wait, 30)
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_call_that_fails_stops_no_other(context: ToolContext) -> None:
    @tool
    def fails() -> None:
        """Fail."""
        raise KeyError

    @tool
    def looks() -> str:
        """Look whether it was stopped."""
        check_stopped()
        return "goes on"

    with pytest.raises(KeyError):
        await fails.run("{}", context)
    assert await looks.run("{}", context) == "goes on"
    check_stopped()
