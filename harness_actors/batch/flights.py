"""The runs in flight: which run works for which task, and room for more."""

import asyncio
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness_actors.batch.history import Attempt
from harness_actors.batch.run_note import RunNote
from harness_actors.batch.tasks import Task
from harness_actors.records import CHILD_MARK
from harness_actors.results import HarnessResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """A task with the run that works on it."""

    task: Task
    attempt: Attempt

    def that_waits(self, waits: HarnessResult) -> "Flight":
        """The same, with what its run comes to for now."""
        return replace(self, attempt=replace(self.attempt, waits=waits))

    @property
    def note(self) -> dict[str, Any]:
        """Metadata by which a later command finds the run of the task again."""
        return asdict(
            RunNote(
                task_id=self.task.id,
                task_hash=self.task.task_hash,
                attempt=self.attempt.number,
                retries=self.attempt.retries,
                metadata=self.task.metadata,
                setup=self.attempt.setup,
            )
        )


class Flights:
    """Runs in flight, never more than `most`.

    A flight holds its place until its outcome was taken, so a reader that is slow holds
    the batch back instead of filling the memory.
    """

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._busy = 0
        """Places that are taken, waited for or promised."""
        self._idle = asyncio.Event()
        self._by_run: dict[str, Flight] = {}

    def promise_place(self) -> None:
        """One more is to come, and `all_landed` waits for it: by `take_place`, when it can."""
        self._busy += 1
        self._idle.clear()

    async def take_place(self, *, promised: bool = False) -> None:
        """Wait for room for one more."""
        if not promised:
            self.promise_place()
        await self._places.acquire()

    def give_place(self) -> None:
        self._places.release()
        self._busy -= 1
        if not self._busy:
            self._idle.set()

    async def all_landed(self) -> None:
        """Wait until no place is taken or promised; so it is until something else is awaited."""
        while self._busy:
            await self._idle.wait()

    def take_off(self, flight: Flight) -> None:
        self._by_run[flight.attempt.run_id] = flight

    def land(self, run_id: str) -> Flight | None:
        """The flight of a run that is over; None for a run that is none of ours."""
        return self._by_run.pop(run_id, None)

    def is_flying(self, run_id: str) -> bool:
        return run_id in self._by_run

    def is_below_one(self, run_id: str) -> bool:
        """Whether one of them has begun a run, or one below it has."""
        return run_id.partition(CHILD_MARK)[0] in self._by_run

    @property
    def run_ids(self) -> list[str]:
        return list(self._by_run)

    def __len__(self) -> int:
        return len(self._by_run)
