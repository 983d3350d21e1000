"""Tasks from any source, one at a time, each with a name of its own."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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

    A task without an id is named by its hash, with ``#2``, ``#3`` for repeats; an id given
    twice makes the second a bad task. The further epochs of a task follow it as ``id@2``.

    Attributes:
        count: How many tasks come in all, epochs counted; None where the source does not
            say.

    Raises:
        ConfigError: The source is one task and not many.
    """

    def __init__(self, source: TaskSource, *, epochs: int = 1) -> None:
        if isinstance(source, str | Mapping):
            raise ConfigError("tasks", "must be many: put the one task into a list")
        self._source = _with_await(source)
        self._epochs = epochs
        self._names: set[str] = set()
        self._repeats: dict[str, int] = {}
        count = _count_of(source)
        self.count = None if count is None else count * epochs

    async def __aiter__(self) -> AsyncIterator[Task | BadTask]:
        async for given in self._source:
            task = self._named(_as_task(given))
            yield task
            if isinstance(task, Task):
                for epoch in range(2, self._epochs + 1):
                    yield self._named(replace(task, id=f"{task.id}@{epoch}"))

    def _named(self, task: Task | BadTask) -> Task | BadTask:
        if task.id not in self._names:
            self._names.add(task.id)
            return task
        name = self._next_repeat(task.id)
        if isinstance(task, Task) and task.id != task.task_hash:
            return BadTask(id=name, task_hash=task.task_hash, faults=(_TWICE,))
        return replace(task, id=name)

    def _next_repeat(self, name: str) -> str:
        while True:
            self._repeats[name] = self._repeats.get(name, 1) + 1
            repeated = f"{name}#{self._repeats[name]}"
            if repeated not in self._names:
                self._names.add(repeated)
                return repeated


_TWICE = "this id was given to an earlier task; every task needs one of its own"


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
