"""Many runs: tasks, the run directory with its results, resume, checks and progress."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.batch.batch import Batch as Batch
    from harness_actors.batch.batch import run_batch as run_batch
    from harness_actors.batch.outcomes import TaskOutcome as TaskOutcome
    from harness_actors.batch.settings import BatchSettings as BatchSettings
    from harness_actors.batch.task_file import TaskFile as TaskFile
    from harness_actors.batch.tasks import Check as Check
    from harness_actors.batch.tasks import Task as Task

_HOMES = {
    "Batch": "batch",
    "BatchSettings": "settings",
    "Check": "tasks",
    "Task": "tasks",
    "TaskFile": "task_file",
    "TaskOutcome": "outcomes",
    "run_batch": "batch",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
