"""The work of a batch: starts runs, follows them, and brings each task to its outcome."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from harness_actors.actors.driver.awaiting import Answerer
from harness_actors.actors.runtime import News, Runtime, StopMode
from harness_actors.agents import new_run_id
from harness_actors.batch.agents import Agents
from harness_actors.batch.brakes import Brakes
from harness_actors.batch.changes import Changes
from harness_actors.batch.checks import Checks
from harness_actors.batch.feed import Feed
from harness_actors.batch.flights import Flight, Flights
from harness_actors.batch.history import Attempt, Begin, Continue, Done, History, Wait
from harness_actors.batch.outcomes import (
    TaskOutcome,
    may_help_again,
    outcome_of,
    outcome_of_bad,
)
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.scoring import Scoring
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.starting import Starting
from harness_actors.batch.tally import Tally
from harness_actors.batch.tasks import BadTask, Task
from harness_actors.batch.waiting import Deliver, WaitingRuns
from harness_actors.errors import HarnessError
from harness_actors.events import (
    Event,
    InputAwaited,
    ModelFellBack,
    QuestionAnswered,
    RoundCompleted,
    RunCompleted,
    RunEvent,
    RunParked,
)
from harness_actors.ports import Clock
from harness_actors.results import HarnessResult
from harness_actors.stores.taking_up import is_lost

OnEvent = Callable[[RunEvent], None]


class Engine:
    """Brings the tasks of a feed to their outcomes on a runtime that is open.

    Args:
        feed: The tasks.
        agents: Who runs them.
        settings: The settings of the batch.
        directory: Where results and workspaces go, locked by the caller.
        roster: Told of the tasks as they are come by.
        runtime: Where the runs run.
        tally: Kept up to date.
        deliver: Called with each outcome when it is on disk; it may make the engine wait.
        on_event: Called with each event of the tasks' runs; None for nobody.
        answerer: Answers questions of runs at once; None for nobody.
        clock: By which approvals expire.
    """

    def __init__(
        self,
        *,
        feed: Feed,
        agents: Agents,
        settings: BatchSettings,
        directory: RunDirectory,
        roster: Roster,
        runtime: Runtime,
        tally: Tally,
        deliver: Deliver,
        on_event: OnEvent | None = None,
        answerer: Answerer | None = None,
        clock: Clock,
    ) -> None:
        self._feed = feed
        self._agents = agents
        self._settings = settings
        self._directory = directory
        self._roster = roster
        self._runtime = runtime
        self._tally = tally
        self._deliver = deliver
        self._on_event = on_event
        self._flights = Flights(settings.concurrency)
        self._waiting = WaitingRuns(
            runtime,
            setups=directory.setups,
            tally=tally,
            deliver=deliver,
            answerer=answerer,
            clock=clock,
        )
        self._scoring = Scoring(Checks(directory.checks_path), tally)
        self._history: History
        self._changes = Changes(directory, settings)
        self._cursor: int
        """Up to where the events of the runs have been noted."""
        self.has_begun = False
        self.brakes = Brakes(settings, total=feed.count)
        self._starting = Starting(
            runtime,
            agents=agents,
            directory=directory,
            flights=self._flights,
            tally=tally,
            brakes=self.brakes,
        )

    async def run(self) -> None:
        """Work until every task has ended, or nothing new may start and all has landed.

        Raises:
            HarnessError: The runtime or the results file failed; the same command goes on.
        """
        # The cursor first: what ends between the two calls is then told twice, not never.
        self._cursor = await self._runtime.position()
        directory, headings = self._directory, await self._runtime.headings()
        self._history = History(directory.results.lines, headings, directory.workspace)
        self.brakes.spend(self._history.cost_usd)
        # The runtime holds it: it may outlive this command, with runs that go on. So without
        # one, that of the command before is to be taken back.
        await self._runtime.allow(self._settings.budget_usd)
        try:
            async with asyncio.TaskGroup() as group:
                endless = [group.create_task(work(group)) for work in (self._follow, self._wake)]
                await self._launch_all(group)
                await self._flights.all_landed()
                for one in endless:
                    one.cancel()
        except BaseExceptionGroup as failures:
            raise _first(failures) from None

    async def stop(self, mode: StopMode) -> None:
        """Start nothing new, and park what is in flight: `run` then returns."""
        self.brakes.stop()
        self._waiting.cut()
        if mode == "park_now":
            # Their lines are written by the next command, which finds the runs ended.
            self._scoring.cut()
        await self._starting.stop(mode)

    # Launching

    async def _launch_all(self, group: asyncio.TaskGroup) -> None:
        async for task in self._feed:
            if self.brakes.are_on():
                return
            self._roster.add(task)
            if isinstance(task, BadTask):
                await self._refuse(task)
                continue
            now = self._agents.setup_for(task)
            step = self._history.next_step(task, self._settings, now)
            # Where the tasks could not be looked at before.
            self._changes.note(step, now)
            self._changes.refuse()
            if isinstance(step, Done):
                self._tally.add_skipped(step.verdict)
                continue
            if isinstance(step, Wait):
                await self._wait_on(Flight(task=task, attempt=step.attempt), group)
                continue
            await self._flights.take_place()
            if self.brakes.are_on():
                self._flights.give_place()
                return
            self.has_begun = True
            await self._scoring.begin(task, self._agents.source_for(task))
            group.create_task(self._launch(task, step))
        self._roster.is_whole = True

    async def _launch(self, task: Task, step: Continue | Begin) -> None:
        if isinstance(step, Continue):
            # In a cell that outlived its command, it may have ended since.
            step = Continue(self._history.newest_of(step.attempt))
        match step:
            case Continue(attempt) if attempt.end is not None:
                await self._finish(Flight(task=task, attempt=attempt), attempt.end)
            case Continue(attempt):
                await self._starting.go_on(Flight(task=task, attempt=attempt), told=self._cursor)
            case Begin(number, in_place_of):
                if in_place_of is not None:
                    await self._runtime.stop([in_place_of], "cancel")
                attempt = Attempt(number=number, retries=0, run_id=new_run_id())
                await self._begin(Flight(task=task, attempt=attempt))

    async def _wait_on(self, flight: Flight, group: asyncio.TaskGroup) -> None:
        """A run of an earlier command still waits."""
        assert flight.attempt.waits is not None
        self._waiting.add(flight, flight.attempt.waits.reason.details["questions"])
        if not self._waiting.are_answered_here:
            await self._waiting.tell(flight)
            return
        await self._flights.take_place()
        group.create_task(self._wait(flight, group))

    async def _wait(
        self, flight: Flight, group: asyncio.TaskGroup, asked: InputAwaited | None = None
    ) -> None:
        """A run asks its user: its place is free when that is told."""
        try:
            # Before its place is free: that its answers are heard of may take longer.
            if await self._waiting.tell(flight, asked):
                self._go_on(self._waiting.answered(flight.attempt.run_id), group)
        finally:
            self._free()

    async def _wake(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._go_on(await self._waiting.expired(), group)

    def _go_on(self, flight: Flight | None, group: asyncio.TaskGroup) -> None:
        if flight is not None:
            self._flights.promise_place()
            group.create_task(self._come_back(flight))

    async def _come_back(self, flight: Flight) -> None:
        """A run waits no longer: it is over, or goes on in a place that was promised to it."""
        task, attempt = flight.task, flight.attempt
        await self._waiting.told(attempt.run_id)
        await self._flights.take_place(promised=True)
        # Before it goes on: what its check stands on is as an earlier command left it.
        await self._scoring.begin(task, self._agents.source_for(task))
        end = self._waiting.leave(attempt.run_id)
        if end is not None:
            await self._finish(flight, end)
        elif self.brakes.are_on():
            # The next command goes on with it.
            self._free()
        elif self._has_lost_its_place(flight):
            await self._launch(task, Begin(attempt.number + 1, attempt.run_id))
        else:
            await self._starting.go_on(flight, told=self._cursor)

    def _has_lost_its_place(self, flight: Flight) -> bool:
        folder = self._directory.workspace(flight.attempt.run_id)
        return self._agents.work_in_folder(flight.task) and is_lost(str(folder))

    async def _begin(self, flight: Flight) -> None:
        try:
            ready = self._starting.prepare(flight)
        except HarnessError as error:
            task = flight.task
            self._flights.give_place()
            fault = BadTask(id=task.id, task_hash=task.task_hash, faults=(str(error),))
            await self._refuse(fault)
        else:
            await self._starting.begin(ready)

    async def _refuse(self, task: BadTask) -> None:
        if self._history.is_done(task.id, task.task_hash):
            self._tally.add_skipped("failed")
        else:
            await self._record(outcome_of_bad(task))

    # Following

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        while True:
            news = await self._runtime.wait_for_news(self._cursor)
            self._cursor = news.cursor
            for event in news.events:
                self._note_event(event, news, group)

    def _note_event(self, event: RunEvent, news: News, group: asyncio.TaskGroup) -> None:
        run_id = event.run_id
        if not (self._flights.is_flying(run_id) or self._waiting.has(run_id)):
            self._note_other(event, news)
            return
        if self._on_event is not None:
            self._on_event(event)
        if self._waiting.has(run_id):
            self._go_on(self._waiting.note(event, news), group)
            return
        self._count(event.event)
        match event.event:
            case RunParked():
                self._flights.land(run_id)
                self._tally.parked += 1
                self._free()
            case InputAwaited(questions=questions):
                if flight := self._flights.land(run_id):
                    self._tally.running = len(self._flights)
                    # Its rounds were counted as they came.
                    attempt = replace(flight.attempt, counted_usd=0.0)
                    flight = replace(flight, attempt=attempt)
                    self._waiting.add(flight, questions, event.at)
                    group.create_task(self._wait(flight, group, event.event))
            case RunCompleted():
                if flight := self._flights.land(run_id):
                    self._tally.running = len(self._flights)
                    group.create_task(self._finish(flight, news.results[run_id]))
            case _:
                pass

    def _count(self, event: Event) -> None:
        match event:
            case RoundCompleted(cost_usd=cost_usd):
                self._tally.add_round(event)
                self.brakes.spend(cost_usd)
            case ModelFellBack(failed=failed):
                self._tally.fallbacks += bool(failed)
            case _:
                pass

    def _note_other(self, event: RunEvent, news: News) -> None:
        """Something happened in a run that one in flight has begun, or in one of an earlier command
        that was not come by yet."""
        if self._flights.is_below_one(event.run_id):
            self._count(event.event)
            return
        match event.event:
            case RunCompleted():
                self.brakes.spend(self._history.ended(event.run_id, news.results[event.run_id]))
            case QuestionAnswered(question_id=question_id):
                self._history.answered(event.run_id, question_id)
            case _:
                pass

    # Finishing

    async def _finish(self, flight: Flight, result: HarnessResult) -> None:
        attempt = flight.attempt
        if attempt.retries < self._settings.retry_on_error and may_help_again(result):
            # With the brakes on it stays without a line, and the next command retries it.
            if self.brakes.are_on():
                self._free()
            else:
                await self._retry(flight)
            return
        try:
            task, folder = flight.task, self._directory.workspace(result.run_id)
            has_folder = folder.exists() or self._agents.work_in_folder(task)
            check = await self._scoring.score(
                task, result, folder if has_folder else None, self._agents.source_for(task)
            )
            outcome = outcome_of(
                flight.task,
                result,
                attempt=attempt.number,
                check=check,
                setup=attempt.setup,
                made_with=self._directory.setups.made_with(attempt.setup),
            )
            await self._record(outcome)
        finally:
            self._free()

    async def _retry(self, flight: Flight) -> None:
        failed = flight.attempt
        self._tally.retried += 1
        attempt = Attempt(number=failed.number + 1, retries=failed.retries + 1, run_id=new_run_id())
        await self._begin(Flight(task=flight.task, attempt=attempt))

    async def _record(self, outcome: TaskOutcome) -> None:
        self.has_begun = True
        await self._directory.results.append(outcome)
        self._tally.add(outcome)
        self.brakes.count_failed(self._tally.failed, self._tally.ended)
        await self._deliver(outcome)

    def _free(self) -> None:
        self._tally.running = len(self._flights)
        self._flights.give_place()


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one of several failures that says most: ours before others."""
    ours, others = failures.split(HarnessError)
    group = ours or others or failures
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
