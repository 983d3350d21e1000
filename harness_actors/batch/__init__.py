"""Many runs: tasks, the run directory with its results, resume, checks and progress."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.batch.batch import Batch as Batch
    from harness_actors.batch.entry import run_batch as run_batch
    from harness_actors.batch.outcomes import TaskOutcome as TaskOutcome
    from harness_actors.batch.settings import BatchSettings as BatchSettings
    from harness_actors.batch.task_file import TaskFile as TaskFile
    from harness_actors.batch.tasks import Check as Check
    from harness_actors.batch.tasks import Task as Task

__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "Batch": "batch",
        "BatchSettings": "settings",
        "Check": "tasks",
        "Task": "tasks",
        "TaskFile": "task_file",
        "TaskOutcome": "outcomes",
        "run_batch": "entry",
    },
)
