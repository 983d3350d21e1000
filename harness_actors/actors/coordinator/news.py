"""What was committed lately, for those who follow runs by a cursor."""

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness_actors.events import Event, InputAwaited, RunEvent, RunParked, message_events
from harness_actors.records import CHILD_MARK, Entry, RunChanged
from harness_actors.results import HarnessResult

KEPT_CHANGES = 2_000
KEPT_BYTES = 32 << 20
"""Of the messages in the kept changes; a follower that is further behind reads the journal."""
GATHER_S = 0.1
GATHER_ENDS_S = 0.02
"""How long an ending waits for more, so soon after something was told."""
APART_S = 0.05
"""How long what ends no run waits for more, so soon after somebody who reads along was told."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A committed change with its journal position."""

    position: int
    change: RunChanged


class Bulletin:
    """The newest committed changes, and a way to wait for more.

    Attributes:
        position: The newest journal position that is on disk.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self._since = position
        self._urgent_to = position
        """Where the newest change is that does not wait."""
        self._notices: deque[Notice] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._told_at = -math.inf
        """When somebody was told last for whom news gather, on the loop's clock."""

    def publish(self, entries: Sequence[Entry], positions: Sequence[int]) -> None:
        """Entries are on disk at these positions."""
        for entry, position in zip(entries, positions, strict=True):
            self.position = max(self.position, position)
            if isinstance(entry, RunChanged):
                self._notices.append(Notice(position, entry))
                self._bytes += _size(entry)
                if _leaves_service(entry):
                    self._urgent_to = position
                    self._urgent.set()
        while len(self._notices) > KEPT_CHANGES or self._bytes > KEPT_BYTES:
            oldest = self._notices.popleft()
            self._since = oldest.position
            self._bytes -= _size(oldest.change)
        self._news.set()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._news.set()
        self._urgent.set()

    async def news(self, cursor: int, *, messages: bool = False, at_once: bool = False) -> None:
        """Return when there is something after the cursor, or after `wake`.

        An ending is told at once; other news wait a little for company, so that a
        follower of a thousand runs is not called for each round, nor for each ending where
        many end in a row. For one who reads their `messages` along they wait only where somebody
        was told just before, and with `at_once` never.
        """
        if self.position <= cursor:
            self._rearm()
            await self._news.wait()
        if not at_once:
            await (self._until_apart(cursor) if messages else self._gather())
            self._told_at = asyncio.get_running_loop().time()
        self._rearm()

    async def _until_apart(self, cursor: int) -> None:
        early_s = self._told_at + APART_S - asyncio.get_running_loop().time()
        if early_s > 0 and self._urgent_to <= cursor:
            await self._until_urgent(early_s)

    async def _gather(self) -> None:
        await self._until_urgent(GATHER_S)
        early_s = self._told_at + GATHER_ENDS_S - asyncio.get_running_loop().time()
        if early_s > 0:
            await asyncio.sleep(early_s)

    async def _until_urgent(self, most_s: float) -> None:
        """Return when something was published that is not to wait, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._urgent.wait()

    def _rearm(self) -> None:
        self._news.clear()
        self._urgent.clear()

    def after(self, cursor: int) -> list[Notice] | None:
        """The changes after a cursor; None where they are no longer held in memory."""
        if cursor < self._since:
            return None
        newest = []
        for notice in reversed(self._notices):
            if notice.position <= cursor:
                break
            newest.append(notice)
        return newest[::-1]


def events_of(notices: Sequence[Notice], *, messages: bool) -> tuple[RunEvent, ...]:
    """The events of changes, oldest first; with `messages` those of their messages too."""
    events: list[RunEvent] = []
    for notice in notices:
        change = notice.change
        found: list[Event] = message_events(change.delta.messages) if messages else []
        found.extend(change.delta.events)
        events += [
            RunEvent(position=notice.position, run_id=change.run_id, at=change.at, event=event)
            for event in found
        ]
    return tuple(events)


def results_of(notices: Sequence[Notice]) -> Mapping[str, HarnessResult]:
    """How the runs ended that ended in these changes, by run id."""
    return {
        notice.change.run_id: notice.change.end
        for notice in notices
        if notice.change.end is not None
    }


_PUT_ASIDE = frozenset((RunParked, InputAwaited))


def _size(change: RunChanged) -> int:
    return sum([len(message.encoded) for message in change.delta.messages])


def _leaves_service(change: RunChanged) -> bool:
    """Whether a run ends that somebody waits for outside, or one is put aside."""
    if change.end is not None and CHILD_MARK not in change.run_id:
        return True
    return not _PUT_ASIDE.isdisjoint(map(type, change.delta.events))
