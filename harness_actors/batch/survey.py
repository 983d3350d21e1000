"""What is left of a batch, found out before anything is started for it."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from harness_actors.batch.agents import Agents
from harness_actors.batch.changes import Changes
from harness_actors.batch.feed import Feed, TaskSource, can_be_read_again
from harness_actors.batch.flights import Flight
from harness_actors.batch.history import Begin, Continue, Done, History, NextStep, Wait
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
        waiting: Runs that wait for answers, and are left as they are.
    """

    done: Counter[Verdict] = field(default_factory=Counter)
    out_of_budget: int = 0
    left: int = 0
    waiting: list[Flight] = field(default_factory=list)

    def add(self, step: NextStep, task: Task | BadTask) -> None:
        """What there is to do for a task."""
        match step:
            case Done(verdict, out_of_budget):
                self.done[verdict] += 1
                self.out_of_budget += out_of_budget
            case Wait(attempt) if isinstance(task, Task):
                self.waiting.append(Flight(task=task, attempt=attempt))
            case _:
                self.left += 1


async def survey(
    source: TaskSource,
    directory: RunDirectory,
    settings: BatchSettings,
    roster: Roster,
    agents: Agents,
    *,
    asking: bool = False,
) -> Survey | None:
    """Look at all tasks, and at what the results and the journal say of them.

    Args:
        source: The tasks.
        directory: What is known of them; locked, if there is anything in it.
        settings: The settings of the batch.
        roster: Told of all tasks.
        agents: Who would run them.
        asking: Refuse what cannot be asked now.

    Returns:
        None where the source can be read only once, which the work is to do.

    Raises:
        SetupChangedError: What is there was made with other agents, models or settings, which
            is neither accepted nor to be done again.
        StoreError: The journal cannot be read.
        HarnessError: The model of a task cannot be asked.
    """
    if not can_be_read_again(source):
        return None
    lines = directory.results.lines if directory.is_begun else {}
    # Without a line nothing is done, whatever the journal says; it may be made otherwise.
    is_begun = bool(lines or (directory.is_begun and directory.setups.known))
    headings = await asyncio.to_thread(directory.headings) if is_begun or asking else []
    history, changes = History(lines, headings, directory.workspace), Changes(directory, settings)
    found = Survey()
    async for task in Feed(source, epochs=settings.epochs):
        roster.add(task)
        if isinstance(task, BadTask):
            is_done = history.is_done(task.id, task.task_hash)
            found.add(Done("failed") if is_done else Begin(1), task)
            continue
        now = agents.setup_for(task) if is_begun else None
        step = history.next_step(task, settings, now)
        changes.note(step, now)
        found.add(step, task)
        if asking and _asks_a_model(step, settings):
            agents.check(task)
    changes.refuse()
    roster.is_whole = True
    return found


def _asks_a_model(step: NextStep, settings: BatchSettings) -> bool:
    """Whether more is left of a task than to check its outcome and to write it down."""
    match step:
        case Done() | Wait():
            return False
        case Continue(attempt) if attempt.end is not None:
            return attempt.retries < settings.retry_on_error and may_help_again(attempt.end)
        case _:
            return True
