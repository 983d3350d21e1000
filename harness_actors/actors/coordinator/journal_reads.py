"""What is read of a journal while it is written to."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from harness_actors.actors.coordinator.news import Bulletin, events_of, results_of
from harness_actors.actors.runtime import News
from harness_actors.events import DERIVED_EVENTS, RunCompleted, RunEvent
from harness_actors.ports import Journal
from harness_actors.results import HarnessResult

T = TypeVar("T")

EVENTS_PER_PAGE = 5_000


class Readings:
    """Reads a journal in its writer's thread: so it sees what was committed before.

    Args:
        journal: The journal.
        bulletin: The newest of it.
        thread: The writer's.
    """

    def __init__(self, journal: Journal, bulletin: Bulletin, thread: Executor) -> None:
        self._journal = journal
        self._bulletin = bulletin
        self._thread = thread

    async def read(self, call: Callable[..., T], *arguments: object) -> T:
        """One call of the journal."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def after(self, cursor: int, *, messages: bool) -> News:
        """What is on disk after a cursor; see `Runtime.wait_for_news`."""
        # Of now: while the journal is read, more may come to be on disk.
        newest = self._bulletin.position
        notices = self._bulletin.after(cursor)
        if notices is not None:
            events = events_of(notices, messages=messages)
            return News(cursor=newest, events=events, results=results_of(notices))
        # After what is held in memory, as after a restart: ask the journal.
        stored = await self.read(self._journal.load_events, cursor)
        return News(
            cursor=stored[-1].position if stored else newest,
            events=tuple(e for e in stored if messages or not isinstance(e.event, DERIVED_EVENTS)),
            results=await self._results(stored),
        )

    async def _results(self, events: list[RunEvent]) -> dict[str, HarnessResult]:
        results: dict[str, HarnessResult] = {}
        for event in events:
            if isinstance(event.event, RunCompleted):
                result = await self.read(self._journal.load_result, event.run_id)
                if result is not None:
                    results[event.run_id] = result
        return results

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        """All events of a run, oldest first."""
        found: list[RunEvent] = []
        while page := await self.read(self._page, run_id, found[-1].position if found else 0):
            found.extend(page)
        return tuple(found)

    def _page(self, run_id: str, after: int) -> list[RunEvent]:
        return self._journal.load_events(after, run_id=run_id, limit=EVENTS_PER_PAGE)
