"""One command's work on a run directory: tasks, so many at once, each to an outcome on disk."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import nullcontext, suppress
from typing import Any

from harness_actors.actors.clock import SystemClock
from harness_actors.actors.driver.awaiting import Answerer
from harness_actors.actors.runtime import StopMode
from harness_actors.batch.agents import Agents
from harness_actors.batch.brakes import Ending
from harness_actors.batch.engine import Engine, OnEvent
from harness_actors.batch.feed import Feed, TaskSource
from harness_actors.batch.opening import OpenRuntime
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.summary import sum_up
from harness_actors.batch.survey import Survey, survey
from harness_actors.batch.tally import Tally
from harness_actors.batch.waiting import waiting_outcome
from harness_actors.errors import BadInputError, StoreError
from harness_actors.ports import Clock

LEAVE_S = 5.0
"""How long runs have to park after they were told to do it at once."""


class Batch:
    """One command's work on a run directory.

    Args:
        source: The tasks, taken as they are needed.
        agents: Who runs them.
        directory: Where all of it is kept, not yet locked.
        settings: Concurrency, retries and bounds.
        open_runtime: Starts what the runs run on.
        on_event: Called with each event of the batch's runs.
        answerer: Answers questions of runs at once.
        clock: By which approvals expire; that of this machine by default.

    Attributes:
        tally: The figures so far.
        looked: Set when the tally knows what earlier commands did, if that can be known.
        summary: What `summary.json` says; empty until the end.
        ending: Why it ended; None until then.
    """

    def __init__(
        self,
        source: TaskSource,
        agents: Agents,
        *,
        directory: RunDirectory,
        settings: BatchSettings,
        open_runtime: OpenRuntime,
        on_event: OnEvent | None = None,
        answerer: Answerer | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._feed = Feed(source, epochs=settings.epochs)
        self._agents = agents
        self._directory = directory
        self._settings = settings
        self._open_runtime = open_runtime
        self._on_event = on_event
        self._answerer = answerer
        self._clock = clock or SystemClock()
        self.tally = Tally(self._feed.count)
        self.looked = asyncio.Event()
        self._roster = Roster()
        self.summary: dict[str, Any] = {}
        self.ending: Ending | None = None
        self._engine: Engine | None = None
        self._work: asyncio.Task[None] | None = None
        self._stops: set[asyncio.Task[None]] = set()
        self._parks = False
        self._outcomes: asyncio.Queue[TaskOutcome | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(1)

    @property
    def ok(self) -> bool:
        """Every task ended well, in this command or in an earlier one."""
        return self.ending == "complete" and self.tally.all_ok

    async def run(self) -> AsyncGenerator[TaskOutcome]:
        """Work, yielding each outcome when it is on disk. Those of earlier commands are not.

        Raises:
            StoreInUseError: Another command works on the run directory.
            BadInputError: The run directory holds something else.
            HarnessError: The runtime or a file failed; the same command goes on.
        """
        async with self._directory:
            self._work = asyncio.create_task(self._do_work())
            self._work.add_done_callback(lambda _: self._outcomes.put_nowait(None))
            try:
                while (outcome := await self._outcomes.get()) is not None:
                    yield outcome
                    self._room.release()
                if not self._work.cancelled():
                    self._work.result()
            finally:
                await self._leave(self._work)

    async def check(self) -> None:
        """Refuse what could not be run before anything is made for it, or started.

        Raises:
            HarnessError: A task that is left needs a model which cannot be asked; or as `run`.
        """
        if not self._agents.can_all_be_asked:
            async with self._directory if self._directory.is_begun else nullcontext():
                await self._survey(Roster(), asking=True)

    def park(self) -> None:
        """Start nothing new and put aside what is in flight, each run after its round."""
        self._stop("park")

    def park_now(self) -> None:
        """Put aside what is in flight at once, and leave within a few seconds."""
        self._stop("park_now")
        if self._work is not None:
            # While the runtime is only starting there is nothing to put aside.
            delay_s = LEAVE_S if self._engine else 0.0
            asyncio.get_running_loop().call_later(delay_s, self._work.cancel)

    def _stop(self, mode: StopMode) -> None:
        self._parks = True
        if self._engine is not None:
            self._stops.add(asyncio.create_task(self._engine.stop(mode)))

    async def _do_work(self) -> None:
        looking = asyncio.create_task(self._look())
        try:
            # Looking at many tasks takes a while, and what is not there yet need not wait for it.
            if not self._is_surely_needed() and not await looking:
                return
            if not self._parks:
                await self._do_rest(looking)
        finally:
            looking.cancel()
            await asyncio.wait((looking,))

    def _is_surely_needed(self) -> bool:
        """Whether a runtime is needed, as far as can be told by counting."""
        tasks, known = self._feed.count, self._directory.setups.known
        if self._directory.has_runs:
            # They may all wait for answers, or be refused for where they work.
            return False
        if self._settings.on_change == "refuse" and not self._agents.have(known):
            return False
        return tasks is not None and len(self._directory.results.lines) < tasks

    async def _do_rest(self, looking: "asyncio.Task[bool]") -> None:
        runtime = await self._open_runtime(self._directory.store)
        try:
            await looking
            self._engine = Engine(
                feed=self._feed,
                agents=self._agents,
                settings=self._settings,
                directory=self._directory,
                roster=self._roster,
                runtime=runtime,
                tally=self.tally,
                deliver=self._deliver,
                on_event=self._on_event,
                answerer=self._answerer,
                clock=self._clock,
            )
            if not self._parks:
                await self._engine.run()
        finally:
            await runtime.close()

    async def _look(self) -> bool:
        """Find out what earlier commands did; whether a runtime may be needed for the rest."""
        found = await self._survey(self._roster)
        if found is not None:
            self.tally.know_skipped(found.done, out_of_budget=found.out_of_budget)
        self.looked.set()
        if found is None or found.left or (found.waiting and self._answerer is not None):
            return True
        self.tally.waiting = len(found.waiting)
        for flight in found.waiting:
            await self._deliver(waiting_outcome(flight, self._directory.setups))
        return False

    async def _survey(self, roster: Roster, *, asking: bool = False) -> Survey | None:
        return await survey(
            self._source, self._directory, self._settings, roster, self._agents, asking=asking
        )

    async def _deliver(self, outcome: TaskOutcome) -> None:
        # One that was not taken yet holds the next back, and so the places of their runs.
        await self._room.acquire()
        self._outcomes.put_nowait(outcome)

    async def _leave(self, work: asyncio.Task[None]) -> None:
        # Still at work only where the reader went away.
        for task in (work, *self._stops):
            task.cancel()
        await asyncio.gather(work, *self._stops, return_exceptions=True)
        self.ending = self._ending_of(work)
        begun = self._engine is not None and self._engine.has_begun
        if not begun and isinstance(_error_of(work), BadInputError):
            # Nothing was run, and what the summary says is so still.
            return
        # Where a full disk has ended the work, it is what stopped the work that is told.
        with suppress(StoreError) if self.ending == "error" else nullcontext():
            self._directory.results.compact()
            self.summary = sum_up(
                self._directory, self._roster, self.tally, self._settings, self.ending
            )
            self._directory.write_summary(self.summary)

    def _ending_of(self, work: asyncio.Task[None]) -> Ending:
        if _error_of(work) is not None:
            return "error"
        if self.tally.left == self.tally.waiting:
            if self.tally.out_of_budget:
                return "budget"
            return "waiting" if self.tally.waiting else "complete"
        if self._parks or work.cancelled() or self._engine is None:
            return "interrupted"
        brakes = self._engine.brakes
        if brakes.are_on():
            return brakes.ending
        if self.tally.parked:
            return "parked"
        return "waiting" if self.tally.waiting else "complete"


def _error_of(work: asyncio.Task[None]) -> BaseException | None:
    return None if work.cancelled() else work.exception()
