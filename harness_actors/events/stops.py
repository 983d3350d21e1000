"""Events of the decision whether a run is over."""

from dataclasses import dataclass
from typing import ClassVar

from harness_actors.events.event import Event
from harness_actors.pickling import pickled_by_position


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationPrompt(Event):
    type: ClassVar[str] = "continuation_prompt"

    turn: int
    count: int
    max: int


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecided(Event):
    """What the stop decision came to, once per turn, after all its gates."""

    type: ClassVar[str] = "stop_decided"

    turn: int
    decision: str
    """`stop` or `continue`."""
    reason: str
