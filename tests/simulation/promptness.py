"""The result is there within a second of a limit or a cancel, whatever model and tool do."""

from collections.abc import Callable

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.coordination.active import ActiveRun
from harness_actors.events import InputAwaited, RunParked
from harness_actors.records import RunAdded
from tests.simulation.ledger import Ledger, Request

WITHIN_S = 1.0
ROUNDED_S = 1e-6
INVARIANT = "the result is there within a second"


class Promptness:
    """Looks at runs a second after they were to end.

    Not where something is wrong on their path: a coordinator that was stopped or has died, a
    network that loses calls, a disk that takes its time.

    Args:
        ledger: What happened.
        waited_s: For how long a run has waited for its user, in seconds.
    """

    def __init__(self, ledger: Ledger, waited_s: Callable[[str], float]) -> None:
        self._waited_s = waited_s
        self._ledger = ledger
        self._disk = ledger.disk
        self._loop = ledger.loop

    def added(self, entry: RunAdded) -> None:
        """A run begins to be served."""
        time_s = entry.spec.config.limits.time_s
        if time_s is not None:
            run_id = entry.spec.run_id
            due = self._disk.runs[run_id].added_at - EPOCH + time_s
            self._later(max(0.0, due - self._loop.time()), lambda: self._time_is_over(run_id))

    def requested(self, request: Request, driver: SimulatedProcess) -> None:
        """A user asks a run to stop at once."""
        if request.what in ("cancel", "park_now"):
            path = self._path()
            if path is not None:
                slow_s = self._ledger.slow_s
                self._later(WITHIN_S, lambda: self._was_stopped(request, driver, path, slow_s))

    def _was_stopped(
        self, request: Request, driver: SimulatedProcess, path: CoordinatorHost, slow_s: float
    ) -> None:
        run_id, since = request.run_id, request.asked_at
        if driver.gone or self._path() is not path or self._has_stopped(run_id, since):
            return
        if self._ledger.slow_s > slow_s:
            late, slow_s = self._ledger.slow_s - slow_s, self._ledger.slow_s
            self._later(late, lambda: self._was_stopped(request, driver, path, slow_s))
            return
        if request.what == "park_now" and not self._is_to_stay(path, request):
            return
        text = f"{run_id} was asked to {request.what} at {since:.4f}"
        self._ledger.broken(INVARIANT, text)

    def _is_to_stay(self, path: CoordinatorHost, request: Request) -> bool:
        """It is served still, and nobody asked for it since."""
        asked = self._ledger.requests_of(request.run_id)
        resumed = any(r.what == "resume" and r.is_open_at(request.asked_at) for r in asked)
        return request.run_id in path._coordinator.runs and not resumed

    def _time_is_over(self, run_id: str) -> None:
        added = self._disk.runs[run_id]
        if added.end is not None:
            return
        time_s = added.spec.config.limits.time_s or 0.0
        left_s = added.added_at - EPOCH + time_s + self._waited_s(run_id) - self._loop.time()
        if left_s > 0:
            # Its time stood still meanwhile, and does so perhaps now.
            self._later(left_s + ROUNDED_S, lambda: self._time_is_over(run_id))
            return
        path = self._path()
        run = None if path is None else path._coordinator.runs.get(run_id)
        if path is None or run is None:
            # Parked, or held, or nobody is there; its time goes on to be over.
            self._later(WITHIN_S, lambda: self._time_is_over(run_id))
            return
        since, slow_s = self._loop.time(), self._ledger.slow_s
        self._later(WITHIN_S, lambda: self._has_ended(run, path, since, slow_s))

    def _has_ended(
        self, run: ActiveRun, path: CoordinatorHost, since: float, slow_s: float
    ) -> None:
        run_id = run.spec.run_id
        if self._has_stopped(run_id, since):
            return
        if self._ledger.slow_s > slow_s:
            late, slow_s = self._ledger.slow_s - slow_s, self._ledger.slow_s
            self._later(late, lambda: self._has_ended(run, path, since, slow_s))
        elif self._path() is path and path._coordinator.runs.get(run_id) is run:
            self._ledger.broken(INVARIANT, f"the time of {run_id} was over at {since:.4f}")
        else:
            self._time_is_over(run_id)

    def _has_stopped(self, run_id: str, since: float) -> bool:
        """It has ended, or was put aside since then, and that is on disk."""
        run = self._disk.runs[run_id]
        return run.end is not None or any(
            isinstance(event, RunParked | InputAwaited)
            for _, change in run.changes
            if change.at - EPOCH >= since
            for event in change.delta.events
        )

    def _path(self) -> CoordinatorHost | None:
        """The coordinator, if nothing keeps it from doing what it is asked at once."""
        ledger = self._ledger
        process, host = ledger.coordinator_process, ledger.coordinator
        if not ledger.calm or process is None or host is None:
            return None
        harmed = process.gone or process in ledger.harmed or host.is_broken
        settled = self._loop.time() - ledger.coordinator_since > WITHIN_S
        return None if harmed or not settled else host

    def _later(self, seconds: float, look: Callable[[], None]) -> None:
        self._loop.call_later(seconds, look, context=self._loop.world.context)
