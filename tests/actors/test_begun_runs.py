"""Which runs a driver on Ray takes for its own: begun by it, and not known to be over."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness_actors.actors.on_ray.runtime import RayRuntime
from harness_actors.actors.on_ray.serving import ServedCell
from harness_actors.actors.runtime import News
from harness_actors.events import Event, InputAwaited, RunEvent, RunParked
from harness_actors.results import HarnessResult, Reason


class Cell:
    """A cell that serves nothing; what it answers to `resume` comes when that is let go."""

    def __init__(self, news: News) -> None:
        self._news = news
        self.calls = SimpleNamespace(secrets={})
        self.resuming = asyncio.Event()
        self.may_return = asyncio.Event()
        self.busy: Callable[[], bool] = lambda: False

    async def call(self, call: Any, *_: Any) -> Any:
        if call.__name__ == "wait_for_news":
            return self._news
        self.resuming.set()
        await self.may_return.wait()
        return None

    def went_on(self) -> None:
        return


def news(event: Event | None) -> News:
    if event is not None:
        told = RunEvent(position=1, run_id="over", at=0.0, event=event)
        return News(cursor=1, events=(told,), results={})
    done = Reason(kind="completed", message="")
    result = HarnessResult(run_id="over", status="done", reason=done)
    return News(cursor=1, events=(), results={"over": result})


@pytest.mark.parametrize("told_early", [True, False])
@pytest.mark.parametrize(
    "event", [None, RunParked(turn=1), InputAwaited(turn=1, questions=())], ids=lambda e: str(e)[:5]
)
async def test_a_run_that_is_over_is_not_begun_whenever_that_is_told(
    event: Event | None, told_early: bool
) -> None:
    cell = Cell(news(event))
    runtime = RayRuntime(cast(ServedCell, cell))
    resuming = asyncio.create_task(runtime.resume(["over"], secrets={}))
    await cell.resuming.wait()
    if told_early:
        await runtime.wait_for_news(0)
    cell.may_return.set()
    await resuming
    if not told_early:
        assert cell.busy()
        await runtime.wait_for_news(0)
    assert not cell.busy()
