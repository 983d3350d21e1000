"""When the time of runs is over, whoever serves them and whether anybody does."""

import heapq
from collections.abc import Iterator, Mapping

from harness_actors.coordination.active import ActiveRun
from harness_actors.policies.hooks import LATE_S
from harness_actors.results import LimitKind

GRACE_S = 0.6
"""How long after its time a run may still end by itself, which keeps its last round. With
what a commit takes, its result is there within a second."""


class Deadlines:
    """The time limits of the runs in service.

    A turn ends by itself when the run's time is up. What never gets to its turn does not: a
    run that waits for the quarantine host, or whose executor hangs. Nor does a turn in a
    process that a tool holds up.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
    """

    def __init__(self, runs: Mapping[str, ActiveRun]) -> None:
        self._runs = runs
        self._due: list[tuple[float, str]] = []
        self._watched: dict[str, float] = {}
        """When each run is looked at, by its id. Its other entries in the heap are out of date."""

    def watch(self, run: ActiveRun) -> None:
        """A run is served from now on, or has come to work that waits on nothing."""
        due, run_id = run.due, run.spec.run_id
        if due is None:
            return
        at = due[0] + _grace_s(run)
        if at < self._watched.get(run_id, float("inf")):
            self._watched[run_id] = at
            heapq.heappush(self._due, (at, run_id))

    def forget(self, run_id: str) -> None:
        """A run is served no longer."""
        self._watched.pop(run_id, None)

    def next(self) -> float | None:
        """When the next run is to be looked at, in seconds since the epoch; None for never."""
        while self._due and self._watched.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def passed(self, now: float) -> Iterator[tuple[ActiveRun, LimitKind]]:
        """The runs that are overdue at `now`, in seconds since the epoch, and by which bound."""
        while (at := self.next()) is not None and at <= now:
            _, run_id = heapq.heappop(self._due)
            del self._watched[run_id]
            run = self._runs[run_id]
            due = run.due
            if due is not None and due[0] + _grace_s(run) <= now:
                yield run, due[1]
            else:
                # Its work went on, or waits, since it was put down to be looked at.
                self.watch(run)


def _grace_s(run: ActiveRun) -> float:
    """Hooks that must see each result may still be at it."""
    return GRACE_S + LATE_S if run.spec.late_hooks else GRACE_S
