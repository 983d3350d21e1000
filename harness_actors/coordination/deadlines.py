"""When the time of runs is over, whoever serves them and whether anybody does."""

import heapq
from collections.abc import Iterator, Mapping

from harness_actors.coordination.active import ActiveRun

GRACE_S = 0.6
"""How long behind its time a run may still end by itself, which keeps its last round. With
what a commit takes, its result is there within a second."""


class Deadlines:
    """The time limits of the runs in service.

    A turn ends by itself when the run's time is up. What never gets to its turn does not:
    a run that waits for the quarantine host, or whose executor hangs.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
    """

    def __init__(self, runs: Mapping[str, ActiveRun]) -> None:
        self._runs = runs
        self._due: list[tuple[float, str]] = []

    def watch(self, run: ActiveRun) -> None:
        """A run is served from now on."""
        if run.due_at is not None:
            heapq.heappush(self._due, (run.due_at + GRACE_S, run.spec.run_id))

    def next(self) -> float | None:
        """When the next run is overdue, in seconds since the epoch; None for never."""
        while self._due and self._due[0][1] not in self._runs:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def passed(self, now: float) -> Iterator[ActiveRun]:
        """The runs that are overdue at `now`, in seconds since the epoch."""
        while (due := self.next()) is not None and due <= now:
            _, run_id = heapq.heappop(self._due)
            yield self._runs[run_id]
