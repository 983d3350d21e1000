"""Something that happened in a run, and its place in the journal."""

from dataclasses import dataclass
from typing import ClassVar

from harness_actors.pickling import pickled_by_position


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run."""

    type: ClassVar[str] = "event"


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """An event with its place: whose it is, when, and where in the journal.

    Attributes:
        position: Journal position of the change that the event belongs to; several
            events of one change share it. 0 of one that is told before it is on disk.
        run_id: The run.
        at: Seconds since the epoch, when the change was committed, or the event was heard of.
        event: What happened.
        path: Of a run below the one that is followed, names of the agents from there, with slashes
            between them, such as ``critic/explore``; empty of any other.
    """

    position: int
    run_id: str
    at: float
    event: Event
    path: str = ""
