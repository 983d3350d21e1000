"""Errors of journals, and of the cells that write them."""

from harness_actors.errors.root import HarnessError


class StoreError(HarnessError):
    """The journal could not be read or written.

    Attributes:
        path: The journal's file.
        problem: The cause, and what to do about it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"journal {self.path!r}: {self.problem}"


class RunFileError(StoreError):
    """A file that a run directory keeps beside its journal could not be read or written.

    One that is none of ours, or cannot be read before anything runs, is a `BadInputError`.
    """

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class StaleTermError(StoreError):
    """A newer coordinator owns the journal; what this one sends is refused."""


class StoreInUseError(StoreError):
    """Another command works on this store or run directory."""


class CellError(HarnessError):
    """The actors of a cell could not be started.

    Attributes:
        what: Which part of the cell.
        problem: What was waited for, for how long, and the likely cause.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what = what
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}"


class ActorLostError(HarnessError):
    """A process of the cell died; its runs go to repair, or on at the next command.

    Attributes:
        actor: Which actor.
        problem: What is known of its death.
    """

    def __init__(self, actor: str, problem: str) -> None:
        super().__init__(actor, problem)
        self.actor = actor
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.actor} was lost: {self.problem}"
