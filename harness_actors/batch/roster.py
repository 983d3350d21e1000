"""Which tasks a command has: what earlier commands left of other tasks is not its own."""

from harness_actors.batch.tasks import BadTask, Task


class Roster:
    """The tasks of a source, as far as they were come by.

    Attributes:
        is_whole: All of them were.
    """

    def __init__(self) -> None:
        self._tasks: set[tuple[str, str]] = set()
        self.is_whole = False

    def add(self, task: Task | BadTask) -> None:
        self._tasks.add((task.id, task.task_hash))

    def has(self, task_id: str, task_hash: str) -> bool:
        """Whether a task of this name and content was come by."""
        return (task_id, task_hash) in self._tasks
