"""The runs of a batch that wait for their user: they hold no place, and may come back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from harness_actors.actors.driver.awaiting import (
    Answerer,
    answers_from,
    reason_to_wait,
    result_of_waiting,
)
from harness_actors.actors.runtime import Runtime
from harness_actors.batch.flights import Flight
from harness_actors.batch.outcomes import TaskOutcome, outcome_of
from harness_actors.batch.setups_file import SetupsFile
from harness_actors.batch.tally import Tally
from harness_actors.errors import AnswerError
from harness_actors.events import InputAwaited, QuestionAnswered, RunCompleted, RunEvent
from harness_actors.results import HarnessResult

logger = logging.getLogger(__name__)

Deliver = Callable[[TaskOutcome], Awaitable[None]]


class WaitingRuns:
    """Tells of runs that wait, and notices when one of them is to go on, or is over.

    Args:
        runtime: Takes the answers of a program.
        setups: What the runs were made with.
        tally: Told how many they are.
        deliver: Called with the outcome of each, which is not final.
        answerer: Answers questions at once; None leaves all of them to people.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        setups: SetupsFile,
        tally: Tally,
        deliver: Deliver,
        answerer: Answerer | None,
    ) -> None:
        self._runtime = runtime
        self._setups = setups
        self._tally = tally
        self._deliver = deliver
        self._answerer = answerer
        self._by_run: dict[str, Flight] = {}
        self._open: dict[str, set[str]] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._answering: set[asyncio.Future[Mapping[str, str]]] = set()
        self._is_cut = False

    @property
    def are_answered_here(self) -> bool:
        """A program answers at once, as far as it can."""
        return self._answerer is not None

    def has(self, run_id: str) -> bool:
        return run_id in self._by_run

    def add(self, flight: Flight, question_ids: set[str]) -> None:
        """A run waits from here on, until all of these questions are answered."""
        run_id = flight.attempt.run_id
        self._by_run[run_id], self._open[run_id] = flight, question_ids
        self._tally.waiting = len(self._by_run)

    def note(self, event: RunEvent) -> Flight | None:
        """Something happened in one of them.

        Returns:
            The run, where it waits no longer; None while it does.
        """
        run_id = event.run_id
        match event.event:
            case QuestionAnswered(question_id=question_id):
                self._open[run_id].discard(question_id)
                if self._open[run_id]:
                    return None
            case RunCompleted():
                pass
            case _:
                return None
        del self._open[run_id]
        flight = self._by_run.pop(run_id)
        self._tally.waiting = len(self._by_run)
        return flight

    async def tell(self, flight: Flight, asked: InputAwaited | None = None) -> None:
        """Have the questions of a run answered at once, or else tell of them.

        Args:
            flight: The run.
            asked: What it asks, where it has begun to wait just now; None where its attempt
                has what it waits for.
        """
        run_id, telling = flight.attempt.run_id, asyncio.current_task()
        assert telling is not None, "awaited by a task"
        self._telling[run_id] = telling
        try:
            if asked is not None:
                waits = await result_of_waiting(self._runtime, run_id, asked)
                flight = flight.that_waits(waits.with_transcript(()))
            await self._tell(flight)
        finally:
            self._telling.pop(run_id, None)

    async def _tell(self, flight: Flight) -> None:
        waits = flight.attempt.waits
        assert waits is not None, "of a run that waits"
        given = await self._answered_at_once(waits)
        asked = waits.reason.details["questions"]
        left = [question for question in asked if question["id"] not in given]
        if left:
            now = flight.that_waits(replace(waits, reason=reason_to_wait(left)))
            await self._deliver(waiting_outcome(now, self._setups))

    async def told(self, run_id: str) -> None:
        """Return when it is told that a run waits: what becomes of it comes behind that."""
        if (telling := self._telling.get(run_id)) is not None:
            await asyncio.wait((telling,))

    def cut(self) -> None:
        """Wait for no program to answer any more: what it was asked stays open."""
        self._is_cut = True
        for answering in self._answering:
            answering.cancel()

    async def _answered_at_once(self, waits: HarnessResult) -> Mapping[str, str]:
        if self._answerer is None or self._is_cut:
            return {}
        answering = asyncio.ensure_future(answers_from(self._answerer, waits))
        self._answering.add(answering)
        try:
            await asyncio.wait((answering,))
            answers = {} if answering.cancelled() else answering.result()
            if answers:
                await self._runtime.answer(waits.run_id, answers)
        except AnswerError as error:
            # One that it does not take leaves it waiting, and all other runs as they are.
            logger.warning(str(error))
            return {}
        finally:
            answering.cancel()
            self._answering.discard(answering)
        return answers


def waiting_outcome(flight: Flight, setups: SetupsFile) -> TaskOutcome:
    """The outcome of a task whose run waits, which is none of its end.

    Args:
        flight: The task with its run, which has what that comes to for now.
        setups: What runs were made with.
    """
    attempt = flight.attempt
    assert attempt.waits is not None, "of a run that waits"
    return outcome_of(
        flight.task,
        attempt.waits,
        attempt=attempt.number,
        check=None,
        setup=attempt.setup,
        made_with=setups.made_with(attempt.setup),
    )
