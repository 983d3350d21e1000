"""What the harness expects of a clock."""

from typing import Protocol


class Clock(Protocol):
    """Time, so that tests and the simulation can move it."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
