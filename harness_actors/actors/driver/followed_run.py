"""One run as whoever began it follows it: until it ends, waits for its user or is put aside."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial

from harness_actors.actors.driver.answering import Answering
from harness_actors.actors.driver.awaiting import (
    Answerer,
    result_of_waiting,
    without_answered,
)
from harness_actors.actors.driver.below import Below
from harness_actors.actors.driver.following import follow
from harness_actors.actors.driver.interrupts import Interruptible
from harness_actors.actors.runtime import Runtime, StopMode
from harness_actors.actors.text.hearing import HeardItem, with_texts
from harness_actors.errors import HarnessError, RunParkedError
from harness_actors.events import InputAwaited, RunEvent
from harness_actors.results import HarnessResult

logger = logging.getLogger(__name__)


class FollowedRun:
    """Follows one run, answers what it asks, and stops it.

    Args:
        run_id: The run.
        answerer: Answers its questions at once; None leaves it waiting.
    """

    def __init__(self, run_id: str, answerer: Answerer | None = None) -> None:
        self.run_id = run_id
        self._answering = Answering(run_id, answerer)
        self._serving: Runtime | None = None
        self._stop_mode: StopMode | None = None

    async def stop(self, *, now: bool = False) -> None:
        """Ask it to be put aside; `now` cuts the round in progress."""
        # One that is only on its way to the runtime is stopped when it is there.
        self._stop_mode = "park_now" if now else "park"
        # Whoever answers is not waited for.
        self._answering.stop()
        if self._serving is not None and not self._answering.stands_still:
            await self._serving.stop([self.run_id], self._stop_mode)

    async def follow(
        self,
        runtime: Runtime,
        begin: Callable[[], Awaitable[None]],
        secrets: Mapping[str, str],
        cursor: int | None = None,
        *,
        children: bool = False,
        heard: bool = False,
    ) -> AsyncGenerator[RunEvent | HarnessResult]:
        """Have it served, and tell what happens in it; its result comes last.

        Args:
            runtime: What serves it.
            begin: Submits it, or asks to go on with it.
            secrets: Keys for going on with it when it was answered.
            cursor: Position of the journal to begin after; None for its end.
            children: Tell what happens in the runs below it, too.
            heard: Somebody reads what its model says.

        Raises:
            RunParkedError: It was put aside.
        """
        answering = self._answering
        below = Below(runtime, [self.run_id]) if children or answering.is_wanted else None
        work = Interruptible(self.stop)
        try:
            with work:
                while True:
                    asked: InputAwaited | None = None
                    serve = partial(self._serve, runtime, begin, heard=heard)
                    items = follow(runtime, [self.run_id], serve, cursor, heard=heard, below=below)
                    async with aclosing(items):
                        async for item in items:
                            if isinstance(item, HarnessResult):
                                await answering.close()
                                yield item.with_transcript(await runtime.events(self.run_id))
                                return
                            if item.path:
                                answering.ask_below(runtime, item)
                            elif isinstance(item.event, InputAwaited):
                                asked = item.event
                            if children or not item.path:
                                yield item
                    if asked is None:
                        break
                    waiting = await result_of_waiting(runtime, self.run_id, asked)
                    cursor = await runtime.position()
                    answered = await answering.answer(runtime, waiting)
                    if len(answered) < len(waiting.questions):
                        yield without_answered(waiting, answered)
                        return
                    begin = partial(runtime.resume, [self.run_id], secrets=secrets)
            await work.passed_on()
            raise RunParkedError(self.run_id)
        except (asyncio.CancelledError, GeneratorExit):
            # Nobody waits for it any more, so it must not go on spending.
            with suppress(HarnessError):
                await asyncio.shield(runtime.stop([self.run_id], "park_now"))
            raise
        finally:
            await answering.close()

    async def tell(
        self,
        runtime: Runtime,
        begin: Callable[[], Awaitable[None]],
        secrets: Mapping[str, str],
        cursor: int | None = None,
        *,
        text: bool,
        children: bool,
        keep: str | None = None,
    ) -> AsyncGenerator[HeardItem]:
        """As `follow`; with `text` it tells what is heard before that is on disk, too, and unless
        `keep` is None its conversation is summarized before it begins."""

        async def begin_short() -> None:
            if keep is not None:
                await runtime.compact(self.run_id, keep)
            await begin()

        items: AsyncGenerator[HeardItem]
        events = self.follow(runtime, begin_short, secrets, cursor, children=children, heard=text)
        before = () if cursor is None else await runtime.events(self.run_id)
        items = with_texts(runtime, self.run_id, events, before) if text else events
        async with aclosing(items):
            async for item in items:
                yield item

    async def _serve(
        self, runtime: Runtime, begin: Callable[[], Awaitable[None]], *, heard: bool
    ) -> None:
        if heard:
            # Each time: one that has waited for its user is forgotten where its text is made.
            await runtime.subscribe([self.run_id])
        await begin()
        self._serving = runtime
        if self._stop_mode is not None:
            await runtime.stop([self.run_id], self._stop_mode)


async def result_of(stream: AsyncGenerator[HeardItem]) -> HarnessResult:
    """The result that a stream of a run ends with; the rest of it is left aside."""
    result: HarnessResult | None = None
    async with aclosing(stream):
        async for item in stream:
            if isinstance(item, HarnessResult):
                result = item
    assert result is not None, "a stream of a run ends with its result"
    return result
