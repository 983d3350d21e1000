"""Tasks from any source, one at a time, each with a name of its own."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from harness_actors.batch.naming import Names
from harness_actors.batch.task_file import TaskFile
from harness_actors.batch.tasks import BadTask, Task, find_faults, parse_task
from harness_actors.errors import ConfigError

TaskLike = Task | BadTask | Mapping[str, Any] | str
"""What a batch takes for a task; what cannot be one has an outcome that says so."""

TaskSource = Iterable[TaskLike] | AsyncIterable[TaskLike]


def can_be_read_again(source: TaskSource) -> bool:
    """Whether each reading of a source yields all of its tasks, and not what is left of them."""
    # Others with a length may still be of one reading, such as a bar around a generator.
    return isinstance(source, Sequence | TaskFile)


class Feed:
    """Takes tasks from their source when they are needed.

    The further epochs of a task follow it; `Names` names them all.

    Attributes:
        count: How many tasks come in all, epochs counted; None where the source does not
            say.

    Raises:
        ConfigError: The source is one task and not many.
    """

    def __init__(self, source: TaskSource, *, epochs: int = 1) -> None:
        if isinstance(source, PathLike):
            raise ConfigError(
                "tasks", f"must be tasks; those of a file are TaskFile({str(source)!r})"
            )
        if isinstance(source, str | Mapping):
            problem = (
                "must be many: put the one task into a list; those of a file are TaskFile(path)"
            )
            raise ConfigError("tasks", problem)
        self._source = _with_await(source)
        self._names = Names(epochs)
        count = _count_of(source)
        self.count = None if count is None else count * epochs

    async def __aiter__(self) -> AsyncIterator[Task | BadTask]:
        async for given in self._source:
            for task in self._names.of(_as_task(given)):
                yield task


def _as_task(given: TaskLike | object) -> Task | BadTask:
    here = Path.cwd()
    match given:
        case BadTask():
            return given
        case Task():
            faults = find_faults(given)
            if not faults:
                return given
            return BadTask(id=given.id, task_hash=given.task_hash, faults=faults)
        case str():
            return parse_task({"task": given}, base=here)
        case _:
            return parse_task(given, base=here)


def _count_of(source: object) -> int | None:
    """How many tasks there are, if the source knows without being read."""
    count = getattr(source, "count", None)
    if isinstance(count, int):
        return count
    return len(source) if hasattr(source, "__len__") else None


async def _with_await(source: TaskSource) -> AsyncIterator[TaskLike]:
    if isinstance(source, AsyncIterable):
        async for given in source:
            yield given
    else:
        for given in source:
            yield given
