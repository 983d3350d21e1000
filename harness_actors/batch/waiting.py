"""The runs of a batch that wait for their user: they hold no place, and may come back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from harness_actors.actors.driver.awaiting import (
    Answerer,
    answer_from,
    answer_in_time,
    result_of_waiting,
    without_answered,
)
from harness_actors.actors.runtime import News, Runtime
from harness_actors.batch.expiries import Expiries
from harness_actors.batch.flights import Flight
from harness_actors.batch.outcomes import TaskOutcome, outcome_of
from harness_actors.batch.setups_file import SetupsFile
from harness_actors.batch.tally import Tally
from harness_actors.errors import AnswerError
from harness_actors.events import InputAwaited, QuestionAnswered, RunCompleted, RunEvent
from harness_actors.ports import Clock
from harness_actors.results import HarnessResult, OpenQuestion

logger = logging.getLogger(__name__)

Deliver = Callable[[TaskOutcome], Awaitable[None]]


@dataclass(slots=True)
class _Waiter:
    """A run that waits.

    Attributes:
        flight: The run.
        open: When each of its questions expires that are not answered, by its id; None for never.
        is_told: Set when it is told that it waits.
        end: How it ended, where it was cancelled.
        is_ready: It is to go on, or over.
    """

    flight: Flight
    open: dict[str, float | None]
    is_told: asyncio.Event = field(default_factory=asyncio.Event)
    end: HarnessResult | None = None
    is_ready: bool = False

    @property
    def due(self) -> float | None:
        """When all has expired that is not answered; None for never."""
        known = [due for due in self.open.values() if due is not None]
        return max(known) if known and len(known) == len(self.open) else None


@dataclass(eq=False)
class WaitingRuns:
    """Tells of runs that wait, and notices when one of them is to go on, or is over.

    Args:
        runtime: Takes the answers of a program.
        setups: What the runs were made with.
        tally: Told how many they are.
        deliver: Called with the outcome of each, which is not final.
        answerer: Answers questions at once; None leaves all of them to people.
        clock: The time of the command.
    """

    runtime: Runtime
    _: KW_ONLY
    setups: SetupsFile
    tally: Tally
    deliver: Deliver
    answerer: Answerer | None
    clock: Clock
    _waiters: dict[str, _Waiter] = field(default_factory=dict, init=False)
    _answering: set[asyncio.Future[str | None]] = field(default_factory=set, init=False)
    _is_cut: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._expiries = Expiries(self.clock)

    @property
    def are_answered_here(self) -> bool:
        """A program answers at once, as far as it can."""
        return self.answerer is not None

    def has(self, run_id: str) -> bool:
        return run_id in self._waiters

    def add(
        self,
        flight: Flight,
        questions: Iterable[Mapping[str, Any]],
        told_at: float | None = None,
    ) -> None:
        """A run waits from here on, until all of these questions are answered or have expired.

        Args:
            flight: The run.
            questions: As `InputAwaited` has them.
            told_at: When it began to wait by the clock of its cell, which says what has expired
                and may differ from that of the command; None where that is not known.
        """
        run_id = flight.attempt.run_id
        ahead_s = 0.0 if told_at is None else self.clock.now() - told_at
        waiter = _Waiter(flight, {one["id"]: _due(one, ahead_s) for one in questions})
        self._waiters[run_id] = waiter
        self._expiries.expect(run_id, waiter.due)
        self.tally.waiting += 1

    def note(self, event: RunEvent, news: News) -> Flight | None:
        """Something happened in one of them.

        Returns:
            The run, where it waits no longer; None while it does, and where that is known.
        """
        waiter = self._waiters[event.run_id]
        match event.event:
            case QuestionAnswered(question_id=question_id):
                waiter.open.pop(question_id, None)
                if waiter.open:
                    self._expiries.expect(event.run_id, waiter.due)
                    return None
            case RunCompleted():
                waiter.end = news.results[event.run_id]
            case _:
                return None
        return self._ready(waiter)

    def answered(self, run_id: str) -> Flight | None:
        """All that a run asks was answered here, or has expired.

        Returns:
            The run; None where it is known that it waits no longer.
        """
        waiter = self._waiters.get(run_id)
        return None if waiter is None else self._ready(waiter)

    async def expired(self) -> Flight | None:
        """Wait until all has expired that one of them asks.

        Returns:
            The run; None where it is known that it waits no longer.
        """
        return self.answered(await self._expiries.next())

    def _ready(self, waiter: _Waiter) -> Flight | None:
        if waiter.is_ready:
            return None
        waiter.is_ready = True
        self._expiries.forget(waiter.flight.attempt.run_id)
        self.tally.waiting -= 1
        return waiter.flight

    async def told(self, run_id: str) -> None:
        """Return when it is told that a run waits: what becomes of it comes after that."""
        await self._waiters[run_id].is_told.wait()

    def leave(self, run_id: str) -> HarnessResult | None:
        """A run is none of these any more.

        Returns:
            How it ended; None where it was answered.
        """
        return self._waiters.pop(run_id).end

    async def tell(self, flight: Flight, asked: InputAwaited | None = None) -> bool:
        """Have the questions of a run answered at once, or else tell of them.

        Args:
            flight: The run.
            asked: What it asks, where it has begun to wait just now; None where its attempt
                has what it waits for.

        Returns:
            Whether all of them were answered.
        """
        run_id = flight.attempt.run_id
        if asked is not None:
            waits = await result_of_waiting(self.runtime, run_id, asked)
            flight = flight.that_waits(waits.with_transcript(()))
        is_answered = await self._tell(flight)
        self._waiters[run_id].is_told.set()
        return is_answered

    def cut(self) -> None:
        """Wait for no program to answer any more: what it was asked stays open."""
        self._is_cut = True
        for answering in self._answering:
            answering.cancel()

    async def _tell(self, flight: Flight) -> bool:
        waits = flight.attempt.waits
        assert waits is not None, "of a run that waits"
        answered = await self._answered_at_once(waits)
        if len(answered) == len(waits.questions):
            return True
        now = flight.that_waits(without_answered(waits, answered))
        await self.deliver(waiting_outcome(now, self.setups))
        return False

    async def _answered_at_once(self, waits: HarnessResult) -> frozenset[str]:
        """The ids of the questions that a program of the user has answered, one by one."""
        answered: set[str] = set()
        for question in waits.questions:
            answer = await self._answer_to(question)
            if answer is None:
                continue
            try:
                await answer_in_time(self.runtime, waits.run_id, question, answer)
                answered.add(question.id)
            except AnswerError as error:
                # One that it does not take leaves it waiting, and all other runs as they are.
                logger.warning(str(error))
        return frozenset(answered)

    async def _answer_to(self, question: OpenQuestion) -> str | None:
        if self.answerer is None or self._is_cut:
            return None
        answering = asyncio.ensure_future(answer_from(self.answerer, question))
        self._answering.add(answering)
        try:
            await asyncio.wait((answering,))
            return None if answering.cancelled() else answering.result()
        finally:
            answering.cancel()
            self._answering.discard(answering)


def _due(question: Mapping[str, Any], ahead_s: float) -> float | None:
    """When a question expires by a clock that is so much ahead of that of its cell."""
    expires_at: float | None = question.get("expires_at")
    return None if expires_at is None else expires_at + ahead_s


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
