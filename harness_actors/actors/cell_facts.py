"""What a cell says of itself to those who only look."""

from dataclasses import dataclass

from harness_actors.records import ProcessMark


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFacts:
    """A cell at one moment.

    Attributes:
        store: Its journal.
        pid: The process of its coordinator.
        host: Name of the machine that it lives on.
        node: Ray's id of that machine.
        home: The ``$HARNESS_HOME`` of the command that started it.
        term: Number of this incarnation among all coordinators of this journal, from 1.
        in_progress: The runs that it serves.
        held: How many wait for a key that nobody has handed over.
        idle_for_s: For how long there has been nothing to do.
        stops_in_s: When it stops if nothing happens; None where it ends with its command.
        version: Of this package.
        python: Where its Python is installed.
        problem: Why nothing can go on there; empty where all is well.
        processes: Those that it has had in this term, its coordinator's first.
        in_use: A command has its journal locked to work on it.
        idle_since: When it last had something to do, by the monotonic clock of its machine.
        memory_mb: What its processes take, shared memory by their share; None where nobody
            asked for it, or it cannot be told.
    """

    store: str
    pid: int
    host: str
    node: str
    home: str = ""
    term: int = 0
    in_progress: tuple[str, ...] = ()
    held: int = 0
    idle_for_s: float = 0.0
    stops_in_s: float | None = None
    version: str = ""
    python: str = ""
    problem: str = ""
    processes: tuple[ProcessMark, ...] = ()
    in_use: bool = False
    idle_since: float = 0.0
    memory_mb: float | None = None
