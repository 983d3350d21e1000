"""Events of the gates of an agent: hooks that failed, tools counted, contracts verified."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness_actors.events.event import Event
from harness_actors.pickling import pickled_by_position


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class HookFailed(Event):
    """A hook raised, took too long, or returned what its kind does not take."""

    type: ClassVar[str] = "hook_failed"

    kind: str
    hook: str
    problem: str
    call_id: str = ""
    """The call that it was asked about; empty where it was about none."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsCounted(Event):
    """A turn is over, and so many calls of each tool were made in the run by then."""

    type: ClassVar[str] = "tool_usage"

    turn: int
    calls: Mapping[str, int]


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ContractVerified(Event):
    """The agent said that it is done, and its contract was verified."""

    type: ClassVar[str] = "contract_verified"

    turn: int
    attempt: int
    """Which of the run, from 1."""
    satisfied: bool
    met: int
    """Requirements that are met, of those that are needed."""
    required: int
    unmet: tuple[str, ...] = ()
    """Ids of the first of the others."""
    limit: str = ""
    """The bound of the run that cut it short; empty where none did."""
