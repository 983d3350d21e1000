"""A fault that was made on purpose."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.simulation import schedule
from tests.simulation.schedule import Mode

Patches = Sequence[tuple[Any, str, Any]]
"""What is put in whose place: owner, name, value."""


@dataclass(frozen=True)
class PlantedBug:
    """A fault.

    Attributes:
        name: What is wrong.
        patches: Makes it so.
        breaks: The promises that it may break. What else goes wrong with it, it is not found
            by: a patch that only fails would break something, too.
        mode: With which journal it shows.
        at_once: Whether executors that have nothing to do are not asked where it shows.
    """

    name: str
    patches: Callable[[], Patches]
    breaks: frozenset[str]
    mode: Mode = "protocol"
    at_once: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have it for as long as this is open."""
        before = []
        asks_each = (schedule, "asks_each", lambda _seed: not self.at_once)
        try:
            for owner, name, value in (asks_each, *self.patches()):
                before.append((owner, name, owner.__dict__[name]))
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in reversed(before):
                setattr(owner, name, value)
