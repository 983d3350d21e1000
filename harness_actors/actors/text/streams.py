"""The stream actor of a cell: holds what models say, for those who read it while they say it.

Nothing here is durable and nobody waits for it: text that nobody reads in time is dropped,
and whoever reads on is told how much.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from harness_actors.actors.hosted import Hosted, Place
from harness_actors.events import Event

KEPT_PIECES = 2_000
KEPT_CHARS = 1 << 18
"""Of one run; a slower reader misses the oldest."""
KEPT_CHARS_OF_ALL = 1 << 26
POLL_S = 20.0
"""How long a call for text waits for some."""
UNREAD_S = 30.0
"""How long text is kept, and wanted, that nobody comes for."""
WAITING_READERS = 800
"""Calls that wait at once, below what one actor serves: text must still come in beside them."""
REMEMBERED_RUNS = 10_000

Cursor = tuple[int, int, int]
"""Which buffer, and how many pieces and characters of it were read."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of an answer on its way to its readers.

    Attributes:
        run_id: The run.
        answer: Which of the answers that were begun for it: term and hop of who says it, and
            a number within the hop.
        turn: The turn that the answer belongs to.
        round: The round of the turn.
        text: What was said; empty where only the answer's end is told.
        dropped: Characters between the piece before and this one that were dropped.
        ended: The answer is complete.
        event: What happens in the round after that text; None for a piece that is text.
    """

    run_id: str
    answer: tuple[int, int, int]
    turn: int
    round: int
    text: str
    dropped: int = 0
    ended: bool = False
    event: Event | None = None

    @property
    def place(self) -> tuple[int, int]:
        return (self.turn, self.round)


@dataclass(frozen=True, slots=True)
class RunOver:
    """Nothing more is said in a run, unless it is taken up again."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader is told.

    Attributes:
        spoken: The pieces after its cursor.
        cursor: To be given to the next call.
        missed: Characters between the cursor and the first of them that are not there any
            more; None where nobody knows how many, for all was dropped in between.
    """

    spoken: tuple[Spoken, ...]
    cursor: Cursor
    missed: int | None = 0


@dataclass(slots=True)
class SpokenRun:
    """What is held of one run.

    Attributes:
        first: The cursor before the oldest piece that is held.
        end: The cursor after the newest.
        touched_at: When somebody came for it last.
        chars: Of the pieces that are held.
        readers: Who waits for more.
    """

    first: Cursor
    end: Cursor
    touched_at: float
    pieces: deque[Spoken] = field(default_factory=deque)
    chars: int = 0
    readers: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, spoken: Spoken) -> None:
        self.pieces.append(spoken)
        self.chars += len(spoken.text)
        self.end = _after(self.end, spoken)
        while len(self.pieces) > KEPT_PIECES or self.chars > KEPT_CHARS:
            self.drop_oldest()
        self.news.set()

    def drop_oldest(self) -> None:
        oldest = self.pieces.popleft()
        self.chars -= len(oldest.text)
        self.first = _after(self.first, oldest)

    def after(self, cursor: Cursor) -> Reading:
        """What there is after a cursor."""
        if cursor[0] != self.end[0]:
            return Reading(tuple(self.pieces), self.end, None)
        known = cursor[1] - self.first[1]
        if known < 0:
            return Reading(tuple(self.pieces), self.end, self.first[2] - cursor[2])
        return Reading(tuple(islice(self.pieces, known, None)), self.end)


class TextStreams(Hosted):
    """Takes text from those who make it, and gives it to those who ask for it.

    Args:
        unread_s: See `UNREAD_S`.
        monotonic: The time.
    """

    def __init__(
        self, unread_s: float = UNREAD_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._unread_s = unread_s
        self._monotonic = monotonic
        self._runs: dict[str, SpokenRun] = {}
        self._numbers = count(1)
        self._chars = 0
        self._readers = 0
        # Runs that nobody came for: whoever still speaks is told so.
        self._unwanted: OrderedDict[str, None] = OrderedDict()
        self._tidying: asyncio.TimerHandle | None = None

    @classmethod
    def at(cls, place: Place) -> "TextStreams":
        """That of a cell."""
        return cls(monotonic=place.clock.monotonic)

    @property
    def held(self) -> dict[str, int]:
        """Characters that are held, by run."""
        return {run_id: run.chars for run_id, run in self._runs.items()}

    async def receive(self, batch: Sequence[Spoken | RunOver]) -> tuple[str, ...]:
        """Take pieces of any runs, each run's in their order.

        Returns:
            Those of the runs that nobody reads.
        """
        unwanted: dict[str, None] = {}
        for parcel in batch:
            run_id = parcel.run_id
            if isinstance(parcel, RunOver):
                self._unwanted.pop(run_id, None)
            elif run_id in self._unwanted:
                unwanted[run_id] = None
            else:
                self._hold(parcel)
        return tuple(unwanted)

    async def read(self, run_id: str, cursor: Cursor | None) -> Reading:
        """What was said in a run after a cursor; returns when there is something.

        Args:
            run_id: The run.
            cursor: Of the reading before; None begins with the oldest that is held.

        Returns:
            Nothing where nothing comes in `POLL_S`, or at once where too many wait.
        """
        self._unwanted.pop(run_id, None)
        run = self._run(run_id)
        if cursor is None:
            cursor = run.first
        if cursor == run.end and self._readers < WAITING_READERS:
            await self._news(run)
        run.touched_at = self._monotonic()
        return run.after(cursor)

    def close(self) -> None:
        for run in self._runs.values():
            run.news.set()

    async def _news(self, run: SpokenRun) -> None:
        run.news.clear()
        run.readers += 1
        self._readers += 1
        try:
            async with asyncio.timeout(POLL_S):
                await run.news.wait()
        except TimeoutError:
            pass  # whoever asks is told that there is nothing
        finally:
            run.readers -= 1
            self._readers -= 1

    def _run(self, run_id: str) -> SpokenRun:
        if run_id not in self._runs:
            begin = (next(self._numbers), 0, 0)
            self._runs[run_id] = SpokenRun(begin, begin, self._monotonic())
            if self._tidying is None:
                self._tidy_later()
        return self._runs[run_id]

    def _hold(self, spoken: Spoken) -> None:
        run = self._run(spoken.run_id)
        before = run.chars
        run.add(spoken)
        self._chars += run.chars - before
        while self._chars > KEPT_CHARS_OF_ALL:
            largest = max(self._runs.values(), key=lambda held: held.chars)
            before = largest.chars
            largest.drop_oldest()
            self._chars += largest.chars - before

    def _tidy_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._tidying = loop.call_later(self._unread_s / 2, self._tidy)

    def _tidy(self) -> None:
        """Drop what nobody comes for."""
        self._tidying = None
        since = self._monotonic() - self._unread_s
        for run_id, run in list(self._runs.items()):
            if not run.readers and run.touched_at <= since:
                del self._runs[run_id]
                self._chars -= run.chars
                self._unwanted[run_id] = None
        while len(self._unwanted) > REMEMBERED_RUNS:
            self._unwanted.popitem(last=False)
        if self._runs:
            self._tidy_later()


def _after(cursor: Cursor, spoken: Spoken) -> Cursor:
    return (cursor[0], cursor[1] + 1, cursor[2] + len(spoken.text) + spoken.dropped)
