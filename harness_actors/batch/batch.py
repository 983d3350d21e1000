"""`run_batch`: many tasks, so many at once, each to an outcome that is on disk."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness_actors.actors.driver.awaiting import Answerer
from harness_actors.actors.driver.interrupts import Interruptible
from harness_actors.actors.runtime import RuntimeKind, StopMode
from harness_actors.agents import settings_of
from harness_actors.batch.agents import Agents
from harness_actors.batch.brakes import Ending
from harness_actors.batch.engine import Engine, OnEvent
from harness_actors.batch.feed import Feed, TaskSource
from harness_actors.batch.opening import OpenRuntime, opener
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.room import crowding
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import CONCURRENCY, BatchSettings, OnChange
from harness_actors.batch.summary import sum_up
from harness_actors.batch.survey import Survey, survey
from harness_actors.batch.tally import Tally
from harness_actors.batch.waiting import waiting_outcome
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import BadInputError, StoreError
from harness_actors.ports import Agent

logger = logging.getLogger(__name__)

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
    ) -> None:
        self._source = source
        self._feed = Feed(source, epochs=settings.epochs)
        self._agents = agents
        self._directory = directory
        self._settings = settings
        self._open_runtime = open_runtime
        self._on_event = on_event
        self._answerer = answerer
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


async def run_batch(
    tasks: TaskSource,
    agent: Agent | Workflow,
    *,
    concurrency: int = CONCURRENCY,
    config: HarnessConfig | None = None,
    run_dir: str | Path | None = None,
    runtime: RuntimeKind = "ray",
    address: str | None = None,
    retry_on_error: int = 0,
    retry_failed: bool = False,
    fail_on_error: float | None = None,
    budget_usd: float | None = None,
    epochs: int = 1,
    workspace: str | Path | None = None,
    on_change: OnChange = "refuse",
    on_event: OnEvent | None = None,
    on_question: Answerer | None = None,
) -> AsyncGenerator[TaskOutcome]:
    """Run many tasks, so many at once, and yield the outcome of each as it ends.

    Tasks are taken when they are needed, and no further ones while outcomes wait to be
    taken. A task that cannot be run is an outcome (`failed`, reason `bad_input`).

    One whose run waits for its user has an outcome, too (`awaiting_input`, with `questions`),
    which is not final: the run gives its place to another one, and goes on when it is
    answered, in this call or in the next one on the same `run_dir`.

    Ctrl-C under `asyncio.run` starts nothing new and finishes the rounds in flight before the
    caller is cancelled; a second one, or any other cancellation, cuts them. The same call with
    the same `run_dir` goes on.

    Args:
        tasks: Texts, mappings with the fields of a task, or `Task`s; any iterable.
        agent: Who runs those that name no agent file.
        concurrency: Runs in flight at once.
        config: Settings of the runs; a task's own limits take precedence. A workflow that
            was built with a config brings its own.
        run_dir: Where results, journal and workspaces are kept. The same call on the
            same folder goes on where an earlier one ended, and yields only what is new.
            None: in a temporary folder that is removed at the end.
        runtime: ``"ray"``, or ``"local"`` for this process alone.
        address: Which Ray; None finds one or starts one.
        retry_on_error: As of `BatchSettings`, with the rest of its fields.
        on_event: Called with each event of the runs, in this event loop.
        on_question: Answers questions of the runs at once, as that of `AgentHarness`; what
            it does not answer waits.

    Raises:
        ConfigError: A setting is out of range, contradicts that of the workflow, or bounds
            the cost of a model whose price nobody knows; or runs may wait for their user
            in a folder that is removed at the end. A task whose own bound or agent does
            that is an outcome.
        AgentCodeError: A part of the agent cannot be sent to another process.
        BadInputError: ``$HARNESS_CELL_IDLE_S`` or ``$HARNESS_WARM_CELLS`` is not a number, or
            the run directory holds something else.
        StoreInUseError: Another command works on the run directory.
        SetupChangedError: The run directory has results or runs that were made with another
            agent, model or settings; `on_change` says what else may become of them.
        HarnessError: The runtime or a file failed; the same call goes on.
    """
    settings = BatchSettings(
        concurrency=concurrency,
        retry_on_error=retry_on_error,
        retry_failed=retry_failed,
        fail_on_error=fail_on_error,
        budget_usd=budget_usd,
        epochs=epochs,
        workspace=_absolute(workspace),
        on_change=on_change,
    )
    agents = Agents.of(
        agent,
        settings_of(agent, config),
        workspace=settings.workspace,
        budget_usd=budget_usd,
        may_wait=run_dir is not None or on_question is not None,
    )
    with ExitStack() as stack:
        folder = run_dir or stack.enter_context(TemporaryDirectory(prefix="harness-batch-"))
        batch = Batch(
            tasks,
            agents,
            directory=RunDirectory(Path(folder)),
            settings=settings,
            # Nobody comes back to a folder that is removed.
            open_runtime=opener(runtime, address, lasting=run_dir is not None),
            on_event=on_event,
            answerer=on_question,
        )
        told = crowding(concurrency, tasks=batch.tally.total, one_process=runtime == "local")
        if told is not None:
            logger.warning(told)

        async def park() -> None:
            batch.park()

        with Interruptible(park) as work:
            async with aclosing(batch.run()) as outcomes:
                async for outcome in outcomes:
                    yield outcome
        await work.passed_on()


def _error_of(work: asyncio.Task[None]) -> BaseException | None:
    return None if work.cancelled() else work.exception()


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).resolve())
