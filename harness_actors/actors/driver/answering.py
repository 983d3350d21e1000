"""Having the questions of one run, and of those below it, answered at once."""

import asyncio
import logging
from collections.abc import Iterable

from harness_actors.actors.driver.awaiting import (
    Answerer,
    answer_from,
    answer_in_time,
    reason_to_wait,
)
from harness_actors.actors.runtime import Runtime
from harness_actors.errors import AnswerError
from harness_actors.events import InputAwaited, QuestionAnswered, RunCompleted, RunEvent
from harness_actors.records import CHILD_MARK, id_at_the_top
from harness_actors.results import HarnessResult, OpenQuestion

logger = logging.getLogger(__name__)


class Answering:
    """Puts the questions of a run to its user, one at a time.

    Args:
        run_id: The run.
        answerer: Answers at once; None leaves all questions open.

    Attributes:
        stands_still: The run is at no host until it is answered, and nobody can stop it there.
    """

    def __init__(self, run_id: str, answerer: Answerer | None) -> None:
        self._run_id = run_id
        self._answerer = answerer
        self.stands_still = False
        self._is_stopped = False
        self._asking: asyncio.Future[str | None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._left: set[str] = set()
        """Questions that were put while others went on, and that nobody has answered."""
        self._below: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        """What the program of the user has raised meanwhile."""

    @property
    def is_wanted(self) -> bool:
        """Somebody answers, as far as they can."""
        return self._answerer is not None

    def stop(self) -> None:
        """Put no more questions; whoever thinks about one is not waited for."""
        self._is_stopped = True
        if self._asking is not None:
            self._asking.cancel()

    async def close(self) -> None:
        """Wait for nobody any more."""
        for task in self._below:
            task.cancel()
        await asyncio.gather(*self._below, return_exceptions=True)

    def ask_below(self, runtime: Runtime, told: RunEvent) -> None:
        """A run below has asked, while others of its tree go on: they need not stand still for
        that."""
        if not isinstance(told.event, InputAwaited) or self._answerer is None:
            return
        asked = [
            {**one, "id": self._id_here(told.run_id, one["id"]), "path": told.path}
            for one in told.event.questions
        ]
        task = asyncio.create_task(self._ask_below(runtime, reason_to_wait(asked).questions))
        self._below.add(task)
        task.add_done_callback(self._below.discard)

    def _id_here(self, run_id: str, question_id: str) -> str:
        return id_at_the_top(run_id, self._run_id.partition(CHILD_MARK)[0], question_id)

    async def _ask_below(self, runtime: Runtime, questions: Iterable[OpenQuestion]) -> None:
        for question in questions:
            try:
                answer = await self._answer_to(question)
                if answer is not None:
                    await answer_in_time(runtime, self._run_id, question, answer)
                else:
                    self._left.add(question.id)
            except AnswerError as error:
                # It is put again when all others stand still, unless somebody else was faster.
                logger.warning(str(error))
            except Exception as error:  # noqa: BLE001 - a program of the user may raise anything
                # Raised when all stand still, as where the run itself has asked.
                logger.warning("question %s was not answered: %r", question.id, error)
                self._failure = self._failure or error
                return

    async def answer(self, runtime: Runtime, waiting: HarnessResult) -> frozenset[str]:
        """Have a run answered that stands still, each answer on disk before the next question is
        put.

        Returns:
            The ids of what is open no longer, also because somebody else was faster: not all
            where that is left, or it is to stop meanwhile.

        Raises:
            AnswerError: What is answered is none of the answers that it takes.
            Exception: What the program of the user has raised.
        """
        self.stands_still = True
        try:
            await asyncio.gather(*self._below)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            return await self._answer(runtime, waiting)
        finally:
            self.stands_still = False

    async def _answer(self, runtime: Runtime, waiting: HarnessResult) -> frozenset[str]:
        answered: set[str] = set()
        if any(question.path for question in waiting.questions):
            answered |= _settled(waiting, await runtime.events(self._run_id))
        for question in waiting.questions:
            if question.id in answered or question.id in self._left:
                continue
            answer = await self._answer_to(question)
            if answer is None:
                continue
            try:
                await answer_in_time(runtime, self._run_id, question, answer)
                answered.add(question.id)
            except AnswerError as error:
                answered |= _settled(waiting, await runtime.events(self._run_id))
                if question.id not in answered:
                    raise
                # Whoever gave it would take it for what counts.
                logger.warning(str(error))
        return frozenset(answered)

    async def _answer_to(self, question: OpenQuestion) -> str | None:
        async with self._one_at_a_time:
            if self._answerer is None or self._is_stopped:
                return None
            self._asking = asyncio.ensure_future(answer_from(self._answerer, question))
            try:
                await asyncio.wait([self._asking])
                return None if self._asking.cancelled() else self._asking.result()
            finally:
                self._asking.cancel()
                self._asking = None


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
