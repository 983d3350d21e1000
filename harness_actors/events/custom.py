"""Events of a user's own executor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness_actors.events.event import Event
from harness_actors.messages import check_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomEvent(Event):
    """An event of a user's own executor."""

    type: ClassVar[str] = "custom_event"

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON values."""

    def __post_init__(self) -> None:
        check_plain(f"event {self.name!r}", self.data)
