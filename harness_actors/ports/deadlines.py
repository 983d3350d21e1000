"""How long a tool may still take, so that one that looks can end by itself."""

import time
from collections.abc import Callable

TIME_IS_UP = "its time is up"


class DeadlineToken:
    """Tells a call how long it may take, and whether anybody still waits for it.

    It may be asked from any thread: what Python cannot stop can stop itself.

    Args:
        seconds: From now on; None where nothing bounds the call.
        now: A clock that only goes forward, in seconds.
    """

    __slots__ = ("_ends_at", "_now", "_told")

    def __init__(
        self, seconds: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._ends_at = None if seconds is None else now() + seconds
        self._told = ""

    def seconds_left(self) -> float | None:
        """What is left, at least 0; None where nothing bounds the call."""
        return None if self._ends_at is None else max(0.0, self._ends_at - self._now())

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any more: whatever comes of the call is dropped."""
        return bool(self.why)

    @property
    def why(self) -> str:
        """Why nobody waits any more; empty where somebody does."""
        return self._told or (TIME_IS_UP if self.seconds_left() == 0 else "")

    def cancel(self, why: str) -> None:
        """Tell it that nobody waits any more. What was told first stays.

        Args:
            why: As words that go on from "stopped, for"; not empty.
        """
        self._told = self.why or why
