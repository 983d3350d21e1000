"""Where runs are served: at one executor at a time, and nowhere beside the living."""

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from harness_actors.actors.host.compaction_worker import CompactionWorker
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.simulated.processes import (
    SimulatedMachine,
    SimulatedProcess,
    current_process,
)
from harness_actors.events import RunParked
from harness_actors.plan import without_dropped
from harness_actors.ports import Executor, RunContext
from harness_actors.signals import Outcome, Signal
from harness_actors.state import AGENT_TURN, COMPACTION
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.places import run_at, seated, seated_actors

if TYPE_CHECKING:
    from tests.simulation.oracle import Oracle


SERVED: ContextVar[str] = ContextVar("SERVED")
"""The run whose step an executor serves."""


class Serving:
    """Watches the steps that executors serve.

    Attributes:
        open: By run: its steps that have not ended, and the newest.
    """

    def __init__(self, ledger: Ledger, machine: SimulatedMachine) -> None:
        self.open: dict[str, list[Happening]] = {}
        self._ledger = ledger
        self._disk = ledger.disk
        self._machine = machine

    def begins(self, context: RunContext, executor: str) -> Happening:
        run_id, process = context.spec.run_id, current_process()
        step = self._ledger.begin(self._ledger.steps, run_id, executor)
        if run_id not in self._disk.runs:
            text = f"{executor} begins with {run_id}, which is not on disk"
            self._ledger.broken("no run is served before it is on disk", text)
        self._check_predecessors(step)
        self._check_keys(step, context.spec.keys)
        run = run_at(self._ledger.coordinator, process, run_id)
        # Words to one that was put aside meanwhile may come late: what it does there is nobody's.
        if executor == AGENT_TURN and (run is not None or not self._was_parked(run_id)):
            self._check_leftovers(step)
        if run is None:
            self._check_place(step)
        else:
            step.number = run.hop_number
        if run is not None and getattr(context, "_log", None) is not None:
            log, known = list(context.log), list(run.state.log)
            if executor == COMPACTION and executor not in context.spec.custom:
                # What is dropped already is nothing to whoever makes the next plan.
                known = list(without_dropped(known, run.state.plan))
            if log != known[: len(log)]:
                text = f"{executor} is given another log of {run_id} than the coordinator has"
                self._ledger.broken("the state equals the replay of the journal", text)
        return step

    def _check_predecessors(self, step: Happening) -> None:
        left = [s for s in self.open.get(step.run_id, ()) if s.ended_at is None]
        for other in left:
            processes = (other.process, other.process.companion)
            alive = [p for p in processes if p is not None and not p.gone]
            if other.process is not step.process and alive and self._is_given_up(other.process):
                self._ledger.broken(
                    "no run goes on before its last host's process is gone",
                    f"{step.run_id} goes on at {step.process!r} while {alive} lives",
                )
        self.open[step.run_id] = [*left, step]

    def _check_leftovers(self, step: Happening) -> None:
        """What its tools began in an earlier process is gone, whoever was to end it."""
        for process in self._machine.tools:
            supervisor = process.parent
            if process.run_id == step.run_id and supervisor is not step.process.companion:
                self._ledger.broken(
                    "no run goes on before the processes of its tools are gone",
                    f"{step.run_id} goes on at {step.process!r} while {process!r} lives",
                )

    def _check_keys(self, step: Happening, keys: tuple[str, ...]) -> None:
        """Its coordinator has the keys that it needs; it is held else."""
        host = self._ledger.coordinator
        if keys and host is not None and step.process.term == host.term:
            missing = [name for name in keys if name not in host._programs._secrets]
            if missing:
                text = f"{step.run_id} is served without {', '.join(missing)}"
                self._ledger.broken("no run goes on without its keys", text)

    def _check_place(self, step: Happening) -> None:
        """It is at another host, or at none; it may only have been stopped meanwhile."""
        host, run_id = self._ledger.coordinator, step.run_id
        if (
            host is None
            or not self.is_served_by(step.process)
            or run_id not in host._coordinator.runs
        ):
            return
        if not self._was_parked(run_id):
            text = f"{run_id} is served at {step.process!r}, and is elsewhere"
            self._ledger.broken("a run is at one executor at a time", text)

    def _was_parked(self, run_id: str) -> bool:
        changes = self._disk.runs[run_id].changes
        return any(isinstance(e, RunParked) for _, c in changes for e in c.delta.events)

    def is_served_by(self, process: SimulatedProcess) -> bool:
        """It has its seat, and the coordinator that gave it is alive."""
        coordinator = self._ledger.coordinator_process
        alive = coordinator is not None and not coordinator.gone and not coordinator.stopped
        actor = seated(self._ledger.coordinator, process)
        return alive and actor is not None and not actor.dead

    def check_idle(self) -> None:
        """Every run is over, and nobody may hold anything of them."""
        host, broken = self._ledger.coordinator, self._ledger.broken
        coordinator = self._ledger.coordinator_process
        if host is None or coordinator is None or coordinator.gone or coordinator.stopped:
            return
        inside = host._coordinator
        router = inside._dispatch._router
        kept = {
            "in service": inside.runs,
            "with a conversation": inside._conversations,
            "held for keys": host._admission._held,
            "at home": router._home,
            "waiting": router._waiting,
            "alone": router._isolated,
            "with a deadline": inside.next_overdue_at,
            "with children": inside.children._below,
            "with queued children": inside.children._queued,
            "with children put aside": {r: c for r, c in inside.children._aside.items() if c},
            "with children at rest": {r: c for r, c in inside.children._resting.items() if c},
            "with the use of a tree": inside.children.limits._used,
            "summarized": {s: n for s, n in inside._background._jobs.items() if n},
        }
        for what, of in kept.items():
            if of:
                broken("nothing is left of runs that are over", f"{what}: {of}")
        for actor in seated_actors(host):
            if actor.dead or actor.process.gone or actor.process.stopped:
                continue
            left = actor.now.instance.hosted
            if isinstance(left, CompactionWorker) and (left._tasks or len(left._seen)):
                text = f"{actor.process!r} is at {list(left._tasks)}"
                broken("nothing is left of runs that are over", text)
            if not isinstance(left, ExecutorHost):
                continue
            if left._runs or left._tasks or len(left._seen):
                text = f"{actor.process!r} has {list(left._runs)} and steps of {list(left._tasks)}"
                broken("nothing is left of runs that are over", text)

    def _is_given_up(self, process: SimulatedProcess) -> bool:
        """Its runs went on because it was thought dead."""
        return seated(self._ledger.coordinator, process) is None


class ServedStep:
    """A step of an executor, from its beginning to its end."""

    def __init__(self, oracle: "Oracle", context: RunContext, executor: str) -> None:
        self._oracle = oracle
        self._context = context
        self._executor = executor
        self._step: Happening | None = None
        self._served: Token[str] | None = None

    def __enter__(self) -> None:
        self._served = SERVED.set(self._context.spec.run_id)
        self._step = self._oracle.step_begins(self._context, self._executor)

    def __exit__(self, kind: object, error: object, _trace: object) -> None:
        if self._served is not None:
            SERVED.reset(self._served)
        if self._step is not None:
            self._oracle.ledger.end(self._step, "answered" if kind is None else "was cut")


class WatchedExecutor:
    """One of our executors, with what it serves written down."""

    def __init__(self, executor: Executor, oracle: "Oracle") -> None:
        self._executor = executor
        self._oracle = oracle
        self.name = executor.name
        self.reads = executor.reads
        self.reads_log = executor.reads_log

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        with self._oracle.serving(context, self.name):
            return await self._executor.handle(signal, context)
