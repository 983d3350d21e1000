"""When runs that wait go on by themselves, since what they ask has expired."""

import asyncio
import heapq

from harness_actors.ports import Clock

LONGEST_NAP_S = 60.0
"""How late it is noticed, at most, that the time has moved on while this machine slept."""


class Expiries:
    """Tells one after the other which runs have expired.

    Args:
        clock: The time of this command.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        """When each run expires, by its id. Its other entries in the heap are out of date."""
        self._is_earlier = asyncio.Event()

    def expect(self, run_id: str, due: float | None) -> None:
        """A run expires then, and not when it was to before.

        Args:
            run_id: The run.
            due: By the clock of this command, in seconds since the epoch; None for never.
        """
        if due == self._due.get(run_id):
            return
        self.forget(run_id)
        if due is not None:
            self._due[run_id] = due
            heapq.heappush(self._heap, (due, run_id))
            if self._heap[0] == (due, run_id):
                self._is_earlier.set()

    def forget(self, run_id: str) -> None:
        """A run waits no longer."""
        self._due.pop(run_id, None)

    async def next(self) -> str:
        """Wait until the next run expires: its id. It is told once."""
        while True:
            self._is_earlier.clear()
            due = self._earliest()
            left_s = None if due is None else due - self._clock.now()
            if left_s is not None and left_s <= 0:
                _, run_id = heapq.heappop(self._heap)
                del self._due[run_id]
                return run_id
            await self._nap(left_s)

    def _earliest(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    async def _nap(self, seconds: float | None) -> None:
        """Wait for so long, or until another run comes first."""
        if seconds is None:
            await self._is_earlier.wait()
            return
        nap = asyncio.ensure_future(self._clock.sleep(min(seconds, LONGEST_NAP_S)))
        woken = asyncio.ensure_future(self._is_earlier.wait())
        try:
            await asyncio.wait((nap, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            woken.cancel()
