"""What is left of a batch, found out before anything is started for it."""

import asyncio
from dataclasses import dataclass

from harness_actors.batch.feed import Feed, TaskSource, can_be_read_again
from harness_actors.batch.history import Done, History
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.tasks import BadTask, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """How far a batch is.

    Attributes:
        done: Tasks of which nothing is left to do.
        ok: Those of them that ended well.
        left: Tasks to begin, to take up again, or whose line is to be written.
    """

    done: int
    ok: int
    left: int


async def survey(
    source: TaskSource, directory: RunDirectory, settings: BatchSettings
) -> Survey | None:
    """Look at all tasks, and at what the results and the journal say of them.

    Returns:
        None where the source can be read only once, which the work is to do.

    Raises:
        StoreError: The journal cannot be read.
    """
    if not can_be_read_again(source):
        return None
    lines = directory.results.lines
    # Without a line nothing is done, whatever the journal says.
    headings = await asyncio.to_thread(directory.headings) if lines else []
    history = History(lines, headings)
    done = ok = left = 0
    async for task in Feed(source, epochs=settings.epochs):
        was_ok = _done_before(task, history, settings.retry_failed)
        if was_ok is None:
            left += 1
        else:
            done += 1
            ok += was_ok
    return Survey(done=done, ok=ok, left=left)


def _done_before(task: Task | BadTask, history: History, retry_failed: bool) -> bool | None:
    """Whether what an earlier command did went well; None where something is left to do."""
    if isinstance(task, BadTask):
        return False if history.is_done(task.id, task.task_hash) else None
    step = history.next_step(task, retry_failed=retry_failed)
    return step.ok if isinstance(step, Done) else None
