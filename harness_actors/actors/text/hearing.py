"""What models say between the events that tell of it, in order."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Iterator

from harness_actors.actors.runtime import Runtime, TextCursor, Texts
from harness_actors.actors.text.streams import Spoken
from harness_actors.errors import HarnessError
from harness_actors.events import (
    AgentResponse,
    Event,
    ExecutorLost,
    RoundCompleted,
    RunEvent,
    RunResumed,
    TextDelta,
    TextGap,
    ToolCalled,
    ToolProgress,
    ToolReturned,
    TurnStarted,
)
from harness_actors.results import HarnessResult

logger = logging.getLogger(__name__)

TEXT_WAIT_S = 2.0
"""How long an answer that is on disk waits for its text, which comes by another way."""

Item = RunEvent | HarnessResult
HeardItem = RunEvent | HarnessResult | TextDelta | TextGap
Piece = TextDelta | TextGap | RunEvent
"""What is heard besides the events that are on disk."""


async def with_texts(
    runtime: Runtime,
    run_id: str,
    items: AsyncGenerator[Item],
    before: Iterable[RunEvent] = (),
) -> AsyncGenerator[HeardItem]:
    """The events of a run with the text of its answers between them, in order.

    The text of an answer comes after the event that begins its turn and before those that
    tell of it; what is not there in `TEXT_WAIT_S` then is missing.

    An event of a round that is not on disk yet, such as a call whose tool begins, comes when
    it happens, at position 0, and not a second time with its round. A round that is lost
    with its process is begun again, and what is told anew after that stands.

    Args:
        runtime: What serves the run.
        run_id: The run.
        items: Its events, its result the last.
        before: What happened in it before these, oldest first.
    """
    hearing = _Hearing(runtime, run_id)
    hearing.learn(before)
    coming = asyncio.ensure_future(_next(items))
    try:
        while True:
            await hearing.news(coming)
            for piece in hearing.take():
                yield piece
            if not coming.done():
                continue
            item = coming.result()
            if item is None:
                return
            if item.run_id != run_id:
                # Of a run below it, which says nothing here before it is on disk.
                yield item
                coming = asyncio.ensure_future(_next(items))
                continue
            hearing.turn_to(item)
            while hearing.lags_behind(item) and await hearing.more():
                for piece in hearing.take():
                    yield piece
            for piece in hearing.before(item):
                yield piece
            if not hearing.was_told(item):
                yield item
            for piece in hearing.take():
                yield piece
            coming = asyncio.ensure_future(_next(items))
    finally:
        hearing.close()
        # Where a reader leaves early, who follows the run parks it now.
        coming.cancel()
        await asyncio.wait((coming,))
        if not coming.cancelled():
            coming.exception()  # told already, or there is nobody to tell
        await items.aclose()


async def _next(items: AsyncGenerator[Item]) -> Item | None:
    return await anext(items, None)


class _Hearing:
    """What was heard of a run, and how far that is."""

    def __init__(self, runtime: Runtime, run_id: str) -> None:
        self._runtime = runtime
        self._run_id = run_id
        self._cursor: TextCursor | None = None
        self._pieces: list[tuple[tuple[int, int], Piece]] = []
        self._told_early: list[Event] = []
        """Events of the current round that were told before they were on disk."""
        self._reading: asyncio.Future[Texts] | None = None
        self._late_at: float | None = None
        self._wait_s = TEXT_WAIT_S
        self._answer: tuple[int, int, int] | None = None
        self._place = (0, 0)
        self._attempt = 0
        self._open = False
        self._ended = (0, 0)
        # Before the event that begins a turn nothing of it is told.
        self._next_place: tuple[int, int] | None = (0, 0)
        self._on_disk = (0, 0)
        self._answered = False
        """The answer of the current round is on disk …"""
        self._open_calls: set[str] = set()
        self._was_cut = False
        """… but what completes that round will never be."""
        self._read()

    async def news(self, other: "asyncio.Future[Item | None]") -> None:
        """Return when something was heard, or the other is done."""
        waited: set[asyncio.Future[Texts] | asyncio.Future[Item | None]] = {other}
        if self._reading is not None:
            waited.add(self._reading)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        self._hear()

    async def more(self) -> bool:
        """Wait for more; False where the time for that is up."""
        loop = asyncio.get_running_loop()
        if self._late_at is None:
            self._late_at = loop.time() + self._wait_s
        left_s = self._late_at - loop.time()
        if self._reading is None or left_s <= 0:
            return False
        await asyncio.wait((self._reading,), timeout=left_s)
        self._hear()
        return True

    def take(self) -> list[Piece]:
        """What was heard and not taken yet, up to the current round.

        A round may be one ahead of the disk, and so of the events of the one before.
        """
        due = len(self._pieces)
        if self._next_place is not None:
            later = (at for at, (place, _) in enumerate(self._pieces) if place > self._next_place)
            due = next(later, due)
        taken, self._pieces = self._pieces[:due], self._pieces[due:]
        self._told_early += [
            piece.event
            for _, piece in taken
            if isinstance(piece, RunEvent) and not isinstance(piece.event, ToolProgress)
        ]
        return [piece for _, piece in taken]

    def was_told(self, item: Item) -> bool:
        """The item was told before it was on disk."""
        if not isinstance(item, RunEvent):
            return False
        match item.event:
            case event if event in self._told_early:
                self._told_early.remove(event)
                return True
            case RoundCompleted() | RunResumed() | ExecutorLost():
                # Of a round that is done nothing more comes; of one that was lost, all again.
                self._told_early.clear()
        return False

    def turn_to(self, item: Item) -> None:
        """The item comes next, and may begin a round or end one."""
        if not isinstance(item, RunEvent):
            return
        match item.event:
            case TurnStarted(turn=turn):
                self._begin_round(turn, 1)
            case RoundCompleted(turn=turn, round=round_):
                self._begin_round(turn, round_ + 1)
            case ToolCalled(call_id=call_id):
                self._open_calls.add(call_id)
            case ToolReturned(call_id=call_id):
                self._open_calls.discard(call_id)
            case RunResumed():
                self._was_cut = self._answered
                if not self._answered:
                    # What was said to its end did not come to the disk, and is said again.
                    self._ended = (0, 0)
        # That such a round is completed shows only in the results of its calls.
        if self._was_cut and not self._open_calls and self._next_place is not None:
            turn, round_ = self._next_place
            self._begin_round(turn, round_ + 1)

    def _begin_round(self, turn: int, round_: int) -> None:
        self._next_place = (turn, round_)
        self._open_calls.clear()
        self._answered = self._was_cut = False

    def lags_behind(self, item: Item) -> bool:
        """The item tells of an answer that was not heard to its end."""
        if not isinstance(item, RunEvent) or self._next_place is None:
            return False
        match item.event:
            case AgentResponse(text=text) if text.strip():
                return self._ended < self._next_place
        return False

    def before(self, item: Item) -> Iterator[Piece]:
        """What is to be told before an item that tells of an answer, or is the last.

        What is still heard of that answer then comes too late.
        """
        if isinstance(item, HarnessResult):
            self._next_place = None
            yield from self.take()
        elif isinstance(item.event, AgentResponse):
            if self.lags_behind(item):
                # Text that was waited for in vain is not waited for again until some comes.
                self._wait_s = 0.0
                yield TextGap(run_id=self._run_id, missed=None)
            self._answer_is_on_disk()
            self._late_at = None

    def learn(self, events: Iterable[RunEvent]) -> None:
        """What happened before anybody listened: so it is known whose turn it is."""
        for item in events:
            self.turn_to(item)
            if isinstance(item.event, AgentResponse):
                self._answer_is_on_disk()

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _answer_is_on_disk(self) -> None:
        self._on_disk = self._next_place or self._on_disk
        self._answered = True

    def _read(self) -> None:
        self._reading = asyncio.ensure_future(self._runtime.texts(self._run_id, self._cursor))

    def _hear(self) -> None:
        if self._reading is None or not self._reading.done():
            return
        try:
            texts = self._reading.result()
        except HarnessError:
            # The cell is gone, which the events will tell.
            self._reading = None
            return
        except Exception:
            # A fault of ours; the run and its events are none the worse for it.
            logger.exception("text of run %s is not read any more", self._run_id)
            self._reading = None
            return
        self._cursor = texts.cursor
        self._pieces += self._understood(texts)
        self._read()

    def _goes_on(self, spoken: Spoken) -> bool:
        """It tells of a call of the current round, whose answer may long be on disk."""
        return isinstance(spoken.event, ToolProgress) and spoken.place == self._on_disk

    def _understood(self, texts: Texts) -> Iterator[tuple[tuple[int, int], Piece]]:
        if texts.missed or (texts.missed is None and self._open):
            yield self._place, TextGap(run_id=self._run_id, missed=texts.missed)
        for spoken in texts.spoken:
            self._wait_s = TEXT_WAIT_S
            if spoken.place <= self._on_disk and not self._goes_on(spoken):
                continue
            if spoken.answer != self._answer:
                again = spoken.place == self._place
                self._attempt = self._attempt + 1 if again else 1
                self._answer, self._place = spoken.answer, spoken.place
            if spoken.event is not None:
                event = RunEvent(
                    position=0, run_id=self._run_id, at=time.time(), event=spoken.event
                )
                yield spoken.place, event
                continue
            self._open = not spoken.ended
            if spoken.ended:
                self._ended = max(self._ended, spoken.place)
            if spoken.dropped:
                yield spoken.place, TextGap(run_id=self._run_id, missed=spoken.dropped)
            if spoken.text:
                delta = TextDelta(
                    run_id=self._run_id,
                    turn=spoken.turn,
                    round=spoken.round,
                    attempt=self._attempt,
                    text=spoken.text,
                )
                yield spoken.place, delta
