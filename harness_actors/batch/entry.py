"""`run_batch`: many tasks from Python, so many at once, each to an outcome that is on disk."""

import logging
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.actors.driver.awaiting import Answerer
from harness_actors.actors.driver.interrupts import Interruptible
from harness_actors.actors.runtime import RuntimeKind
from harness_actors.agents import settings_of
from harness_actors.batch.agents import Agents
from harness_actors.batch.batch import Batch
from harness_actors.batch.engine import OnEvent
from harness_actors.batch.feed import TaskSource
from harness_actors.batch.opening import opener
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.room import crowding
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import CONCURRENCY, BatchSettings, OnChange
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import Workflow
from harness_actors.ports import Agent

logger = logging.getLogger(__name__)


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


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).resolve())
