"""What is left of a batch, found out before anything is started for it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from harness_actors.batch.feed import Feed, TaskSource, can_be_read_again
from harness_actors.batch.history import Begin, Done, GoOn, History, Step
from harness_actors.batch.outcomes import Verdict, may_help_again
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.tasks import BadTask, Task


@dataclass(slots=True)
class Survey:
    """How far a batch is.

    Attributes:
        done: How the tasks ended of which nothing is left to do.
        out_of_budget: Those of them that a spent budget stopped.
        left: Tasks to begin, to take up again, or whose line is to be written.
    """

    done: Counter[Verdict] = field(default_factory=Counter)
    out_of_budget: int = 0
    left: int = 0


async def survey(
    source: TaskSource,
    directory: RunDirectory,
    settings: BatchSettings,
    roster: Roster,
    check: Callable[[Task], None] | None = None,
) -> Survey | None:
    """Look at all tasks, and at what the results and the journal say of them.

    Args:
        source: The tasks.
        directory: What is known of them; locked, if there is anything in it.
        settings: The settings of the batch.
        roster: Told of all tasks.
        check: Called with each task whose model is to be asked; it may refuse it.

    Returns:
        None where the source can be read only once, which the work is to do.

    Raises:
        StoreError: The journal cannot be read.
        HarnessError: `check` refused a task.
    """
    if not can_be_read_again(source):
        return None
    lines = directory.results.lines if directory.is_begun else {}
    # Without a line nothing is done, whatever the journal says.
    headings = await asyncio.to_thread(directory.headings) if lines or check else []
    history = History(lines, headings)
    found = Survey()
    async for task in Feed(source, epochs=settings.epochs):
        roster.add(task)
        step = _next_step(task, history, settings)
        if isinstance(step, Done):
            found.done[step.verdict] += 1
            found.out_of_budget += step.out_of_budget
            continue
        found.left += 1
        if check is not None and isinstance(task, Task) and _asks_a_model(step, settings):
            check(task)
    roster.is_whole = True
    return found


def _next_step(task: Task | BadTask, history: History, settings: BatchSettings) -> Step:
    if isinstance(task, Task):
        return history.next_step(task, settings)
    return Done("failed") if history.is_done(task.id, task.task_hash) else Begin(1)


def _asks_a_model(step: GoOn | Begin, settings: BatchSettings) -> bool:
    """Whether more is left of a task than to check its outcome and to write it down."""
    if isinstance(step, GoOn) and (end := step.attempt.end) is not None:
        return step.attempt.retries < settings.retry_on_error and may_help_again(end)
    return True
