"""Events of runs that others have begun, in the runs that wait for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness_actors.events.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildrenStarted(Event):
    """A run has begun others, and waits for their ends."""

    type: ClassVar[str] = "children_started"

    turn: int
    children: tuple[Mapping[str, Any], ...]
    """Of each its ``run_id``, the ``agent`` that it runs, and the ``call_id`` by which it was
    begun, in the order of the calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded(Event):
    """A run that another one waits for is over. It is the event of the one that waits."""

    type: ClassVar[str] = "child_ended"

    run_id: str
    agent: str
    call_id: str
    status: str
    """`completed`, `failed`, `cancelled`, `timed_out` or `lost`."""
