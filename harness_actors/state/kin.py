"""What the state of a run holds of those that it has begun, and of the one that has begun it."""

from dataclasses import dataclass
from typing import Literal

ChildStatus = Literal["completed", "failed", "cancelled", "timed_out", "lost"]
"""How a child has ended, for whoever waits for it. `lost`: it kept killing its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    """How a child has ended, as the run is told that waits for it.

    Attributes:
        call_id: The tool call by which it was begun.
        run_id: The child.
        status: How.
        text: What it came to, or why it did not.
    """

    call_id: str
    run_id: str
    status: ChildStatus
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What a run is told before its next model call: that a child beside it has ended, what the
    run says that has begun it, or who is still at work.

    Attributes:
        sender: Handle of the child; empty of the run above; `COORDINATOR` of who is at work.
        status: How the child has ended; None where none has.
        text: What it came to, or what is said.
    """

    sender: str
    status: ChildStatus | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildWait:
    """A call that waits for children which its run has begun beside it.

    Attributes:
        call_id: The call.
        children: Their handles.
        any: It is enough that one of them ends.
        until: Until when, in seconds since the epoch; None for no end. What its run waits for its
            user meanwhile comes to that.
        waited_s: What its run had waited for its user before, in seconds.
    """

    call_id: str
    children: tuple[str, ...]
    any: bool = False
    until: float | None = None
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """What a child has changed in its copy of its parent's workspace, by its newest turn.

    Attributes:
        count: How many files.
        paths: The first of them.
    """

    count: int
    paths: tuple[str, ...]
