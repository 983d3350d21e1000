"""Names of tasks: each has one of its own, and its further epochs have theirs."""

from collections.abc import Iterator
from dataclasses import replace

from harness_actors.batch.tasks import BadTask, Task

TWICE = "this id was given to an earlier task; every task needs one of its own"


class Names:
    """Gives each task its name in the order in which they come.

    A task without an id is named by its hash, with ``#2``, ``#3`` for repeats; an id that is
    a name already makes a bad task, which is named ``id#HASH``: later tasks of a source that is
    not read to its end yet may have any shorter name. The further epochs of a task are named
    ``id@2``, ….

    Args:
        epochs: How often each task is run.

    Attributes:
        places: Where each name was given, as `of` was told.
    """

    def __init__(self, epochs: int = 1) -> None:
        self._epochs = epochs
        self.places: dict[str, int] = {}
        self._repeats: dict[str, int] = {}

    def of(self, task: Task | BadTask, place: int = 0) -> Iterator[Task | BadTask]:
        """The task and its further epochs, named.

        Args:
            task: The task, with the id that it gives itself.
            place: Where it stands, such as the number of its line.
        """
        named = self._named(task, place)
        yield named
        if isinstance(named, Task):
            for name in epochs_of(named.id, self._epochs):
                yield self._named(replace(named, id=name), place)

    def _named(self, task: Task | BadTask, place: int) -> Task | BadTask:
        if task.id not in self.places:
            self.places[task.id] = place
            return task
        if task.id == task.task_hash:
            return replace(task, id=self._next_repeat(task.id, place))
        hashed = f"{task.id}#{task.task_hash}"
        named = self._named(BadTask(id=hashed, task_hash=hashed, faults=()), place)
        if isinstance(task, BadTask):
            return replace(task, id=named.id)
        return BadTask(id=named.id, task_hash=task.task_hash, faults=(TWICE,))

    def _next_repeat(self, name: str, place: int) -> str:
        while True:
            self._repeats[name] = self._repeats.get(name, 1) + 1
            repeated = f"{name}#{self._repeats[name]}"
            if repeated not in self.places:
                self.places[repeated] = place
                return repeated


def epochs_of(name: str, epochs: int) -> list[str]:
    """The names of a task's further epochs.

    >>> epochs_of("t1", 3)
    ['t1@2', 't1@3']
    """
    return [f"{name}@{epoch}" for epoch in range(2, epochs + 1)]
