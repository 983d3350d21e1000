"""One run as whoever began it follows it: until it ends, waits for its user or is put aside."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from functools import partial

from harness_actors.actors.driver.awaiting import (
    Answerer,
    answer_from,
    answer_in_time,
    result_of_waiting,
    without_answered,
)
from harness_actors.actors.driver.below import Below
from harness_actors.actors.driver.following import follow
from harness_actors.actors.driver.interrupts import Interruptible
from harness_actors.actors.runtime import Runtime, StopMode
from harness_actors.actors.text.hearing import HeardItem, with_texts
from harness_actors.errors import AnswerError, HarnessError, RunParkedError
from harness_actors.events import InputAwaited, QuestionAnswered, RunCompleted, RunEvent
from harness_actors.results import HarnessResult, OpenQuestion

logger = logging.getLogger(__name__)


class FollowedRun:
    """Follows one run, answers what it asks, and stops it.

    Args:
        run_id: The run.
        answerer: Answers its questions at once; None leaves it waiting.
    """

    def __init__(self, run_id: str, answerer: Answerer | None = None) -> None:
        self.run_id = run_id
        self._answerer = answerer
        self._serving: Runtime | None = None
        self._stop_mode: StopMode | None = None
        self._answering: asyncio.Future[str | None] | None = None

    async def stop(self, *, now: bool = False) -> None:
        """Ask it to be put aside; `now` cuts the round in progress."""
        # One that is only on its way to the runtime is stopped when it is there.
        self._stop_mode = "park_now" if now else "park"
        if self._answering is not None:
            # It is at no host; whoever answers is not waited for.
            self._answering.cancel()
        elif self._serving is not None:
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
        below = Below(runtime, [self.run_id]) if children else None
        work = Interruptible(self.stop)
        try:
            with work:
                while True:
                    asked: InputAwaited | None = None
                    serve = partial(self._serve, runtime, begin, heard=heard)
                    items = follow(runtime, [self.run_id], serve, cursor, below=below)
                    async with aclosing(items):
                        async for item in items:
                            if isinstance(item, HarnessResult):
                                yield item.with_transcript(await runtime.events(self.run_id))
                                return
                            yield item
                            if isinstance(item.event, InputAwaited) and not item.path:
                                asked = item.event
                    if asked is None:
                        break
                    waiting = await result_of_waiting(runtime, self.run_id, asked)
                    cursor = await runtime.position()
                    answered = await self._answer(runtime, waiting)
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

    async def _answer(self, runtime: Runtime, waiting: HarnessResult) -> frozenset[str]:
        """Have it answered at once, each answer on disk before the next question is put.

        Returns:
            The ids of what is open no longer, also because somebody else was faster: not all
            where that is left, or it is to stop meanwhile.

        Raises:
            AnswerError: What is answered is none of the answers that it takes.
        """
        answered: set[str] = set()
        for question in waiting.questions:
            if question.id in answered:
                continue
            answer = await self._answer_to(question)
            if answer is None:
                continue
            try:
                await answer_in_time(runtime, self.run_id, question, answer)
                answered.add(question.id)
            except AnswerError as error:
                answered |= _settled(waiting, await runtime.events(self.run_id))
                if question.id not in answered:
                    raise
                # Whoever gave it would take it for what counts.
                logger.warning(str(error))
        return frozenset(answered)

    async def _answer_to(self, question: OpenQuestion) -> str | None:
        if self._answerer is None or self._stop_mode is not None:
            return None
        self._answering = asyncio.ensure_future(answer_from(self._answerer, question))
        try:
            await asyncio.wait([self._answering])
            return None if self._answering.cancelled() else self._answering.result()
        finally:
            self._answering.cancel()
            self._answering = None


def _settled(waiting: HarnessResult, told: Iterable[RunEvent]) -> set[str]:
    """The ids of the questions of a run that somebody has answered, or all where it is over."""
    answered: set[str] = set()
    for one in told:
        match one.event:
            case QuestionAnswered(question_id=question_id):
                answered.add(question_id)
            case RunCompleted():
                return {question.id for question in waiting.questions}
            case _:
                pass
    return answered & {question.id for question in waiting.questions}


async def result_of(stream: AsyncGenerator[HeardItem]) -> HarnessResult:
    """The result that a stream of a run ends with; the rest of it is left aside."""
    result: HarnessResult | None = None
    async with aclosing(stream):
        async for item in stream:
            if isinstance(item, HarnessResult):
                result = item
    assert result is not None, "a stream of a run ends with its result"
    return result
