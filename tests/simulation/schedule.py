"""One schedule: a workload on a simulated cell, disturbed and then left alone."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal

from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.host.shipped_executors import host_executor
from harness_actors.actors.hosted import Place
from harness_actors.actors.kinds import EMBEDDED_MODEL, KINDS, STREAMS, Kinds
from harness_actors.actors.simulated.cell import CellParts, SimulatedClock, reach
from harness_actors.actors.simulated.locks import SimulatedKeys
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.network import Network, Weather
from harness_actors.actors.simulated.processes import (
    SimulatedMachine,
    SimulatedProcess,
    current_process,
)
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.steps import EndlessScheduleError
from harness_actors.coordination import run_changes as committed
from harness_actors.coordination.protocol import COMPACTION_WORKER, CUSTOM
from harness_actors.errors import ConversationMovedOnError, StoreError
from harness_actors.executors import (
    AgentTurn,
    AgentTurnServices,
    Compaction,
    Repair,
    StopDecision,
)
from harness_actors.executors.at_once import answer_at_once
from harness_actors.ports import Executor, Journal
from harness_actors.stores import SqliteJournal
from harness_actors.stores.key_locks import KeyLocks
from harness_actors.stores.taking_up import check_run, check_taking_up
from harness_actors.tools import reaping
from harness_actors.tools.open_resources import OpenResources
from harness_actors.tools.reaping import RunReaper
from harness_actors.turn import deadline
from harness_actors.turn.services import RUN_VARIABLE
from tests.simulation.agents import load_programs, program_of
from tests.simulation.beside import Beside, SimulatedModel, WatchedStreams, chosen_refusals
from tests.simulation.contracts import grounds_of
from tests.simulation.disk import Disk, MemoryJournal
from tests.simulation.disturbances import Disturber
from tests.simulation.invariants import check_end
from tests.simulation.journals import Faults, WatchedJournal
from tests.simulation.kin_at_work import NO_DEADLOCK
from tests.simulation.ledger import Ledger, Violation
from tests.simulation.moving import JournalPlace, Mover, Striking
from tests.simulation.oracle import Oracle
from tests.simulation.plans import planned
from tests.simulation.serving import WatchedExecutor
from tests.simulation.summarizing import WatchedWorker
from tests.simulation.tools import Commands
from tests.simulation.user import User
from tests.simulation.working import workers_of

Mode = Literal["protocol", "disk", "moved"]
"""`disk`: the journal is a file; `moved`: one that is taken away and put back besides."""

JOURNAL = "journal.db"
LIVES_WITHIN_S = 900.0
"""Virtual time in which every run must have ended, disturbances included."""
EACH_IS_ASKED = 0.5
"""Share of the schedules in which also those executors are asked that have nothing to do: hops that
are posted are cut, lost and late, and those that are not are none of that."""
QUICK_S = 0.01
"""What a blocking call may take that is not slow."""
SETTLE_S = 0.5
"""Virtual time after which nothing of ended runs must be left anywhere."""

Trace = Callable[[float, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a schedule.

    Attributes:
        seed: Which it was.
        violations: What was broken; empty for a good one.
        steps: How many it took.
        virtual_s: How long it took on its own clock.
        endings: How its runs ended.
    """

    seed: int
    violations: tuple[Violation, ...]
    steps: int
    virtual_s: float
    endings: tuple[str, ...]

    @property
    def breaks(self) -> frozenset[str]:
        """The promises that were broken."""
        return frozenset(violation.invariant for violation in self.violations)


class Pauses:
    """How long blocking calls take: mostly little, now and then long enough to be cut in two."""

    def __init__(self, chance: Random) -> None:
        self._random = chance.random
        self._scale = chance.choice((1.0, 1.0, 1.0, 1.0, 30.0))
        self.ledger: Ledger | None = None
        """Told how long the slow ones take."""

    def before(self) -> float:
        return self._pause()

    def after(self) -> float:
        return self._pause()

    def _pause(self) -> float:
        drawn = self._random()
        quick = drawn < 0.95
        pause = self._scale * (0.0002 + 0.002 * drawn) if quick else 0.3 * drawn
        if pause > QUICK_S and self.ledger is not None:
            self.ledger.slow_s += pause
        return pause


class Schedule:
    """Everything of one seed."""

    def __init__(
        self,
        seed: int,
        *,
        mode: Mode = "protocol",
        without: frozenset[str] = frozenset(),
        trace: Trace | None = None,
    ) -> None:
        self.seed = seed
        self.workload = planned(seed)
        pauses = Pauses(Random(f"{seed}/pauses"))
        self.loop = loop = SimulatedLoop(Random(f"{seed}/order"), pauses)

        def note(who: str, what: str) -> None:
            if trace is not None:
                trace(loop.time(), who, what)

        self.machine = SimulatedMachine(
            loop, Random(f"{seed}/machine"), None if trace is None else note
        )
        self._weather = weather = Weather()
        network = Network(
            self.machine,
            Random(f"{seed}/network"),
            weather,
            copies=self.workload.copies,
            note=None if trace is None else note,
        )
        self.ray = SimulatedRay(self.machine, network, Random(f"{seed}/ray"))
        self.disk = Disk()
        self.ours: set[SimulatedProcess] = set()
        """Processes that serve executors of ours."""
        self.ledger = Ledger(loop, self.disk, None if trace is None else note)
        pauses.ledger = self.ledger
        self.beside = Beside(self.ledger, chosen_refusals(Random(f"{seed}/refusals")))
        self.oracle = Oracle(self.ledger, self.machine, self.workload, seed)
        self._clock = SimulatedClock(loop)
        self._counter = FlatCounter()
        self._keys = SimulatedKeys()
        self._faults = Faults()
        self._folder = Path(tempfile.mkdtemp(dir=_memory())) if mode != "protocol" else None
        self._journals: list[Journal] = []
        parts = CellParts(
            open_journal=self._open_journal,
            kinds=self._kinds(asks_each(seed)),
            work=Commands(self.oracle, self.machine).work,
            agent_turns=self.workload.agent_turns,
            serving=self.oracle.coordinator_began,
            watched=mode == "moved",
            at_once=None if asks_each(seed) else answer_at_once,
        )
        model, at = Random(f"{seed}/model"), partial(reach, self.ray)
        blobs = load_programs(self.workload, self.oracle, self.machine, model, at)
        programs = {name: (program_of(name), blob) for name, blob in blobs.items()}
        self.user = User(
            self.workload,
            self.ray,
            parts,
            self.oracle,
            programs,
            Random(f"{seed}/user"),
            Random(f"{seed}/people"),
            self._settle,
            self._check_taking_up,
            self.beside,
        )
        self._disturber = Disturber(
            seed,
            self.ray,
            weather,
            self._faults,
            without=without,
            ledger=self.ledger,
            kill_driver=self.user.kill_driver,
        )
        self._mover: Mover | None = None
        if self._folder is not None and mode == "moved":
            place = JournalPlace(self._folder, JOURNAL)
            self._mover = Mover(seed, place, self.ray, self.user, self.ledger)

    def run(self) -> Report:
        """Run it to its end, or to the first promise that is broken."""
        reaper = vars(reaping)
        before = committed.CHANGES_PER_SNAPSHOT, reaper["end_carriers"]
        committed.CHANGES_PER_SNAPSHOT = self.workload.snapshot_every
        reaper["end_carriers"] = self.machine.end_carriers
        try:
            self.loop.run_world(self._live())
            if self._mover is not None:
                self._mover.place.put_back()
            if not self.ledger.violations:
                check_end(self)
        except EndlessScheduleError as error:
            self.ledger.broken("every run ends", str(error))
        except Exception as error:  # noqa: BLE001 - one schedule must not end all others
            self.ledger.broken("nothing fails unseen", f"{type(error).__name__}: {error}")
        finally:
            committed.CHANGES_PER_SNAPSHOT, reaper["end_carriers"] = before
            self._dispose()
        return Report(
            seed=self.seed,
            violations=tuple(self.ledger.violations),
            steps=self.loop.steps,
            virtual_s=self.loop.time(),
            endings=tuple(
                f"{run.end.status}({run.end.reason.kind})" if run.end else "unfinished"
                for run in self.disk.runs.values()
            ),
        )

    async def _live(self) -> None:
        try:
            async with asyncio.timeout(LIVES_WITHIN_S):
                living = asyncio.ensure_future(self.user.live())
                while not living.done():
                    await asyncio.wait((living,), timeout=60.0)
                    if self.loop.time() > 100.0:
                        self._disturber.calm()
                        if self._mover is not None:
                            self._mover.calm()
                living.result()
        except TimeoutError:
            left = [run for run in self.workload.runs if run not in self.user.book.ended]
            stuck = any(self.oracle.at_work.waits(run_id) for run_id in left)
            self.ledger.broken(NO_DEADLOCK if stuck else "every run ends", f"{left} do not")

    async def _settle(self) -> None:
        """All is over: let what is on its way arrive, and see what is left."""
        late_s = 0.1 if self.ledger.prompt else 2 * self._weather.slow_s
        self._disturber.calm()
        await asyncio.sleep(SETTLE_S + late_s)
        self.oracle.serving_rules.check_idle()

    def _check_taking_up(self, run_id: str) -> None:
        if self._mover is not None and self._mover.place.is_away:
            raise StoreError(JOURNAL, "it is not there")
        refused = None
        try:
            journal = MemoryJournal(self.disk)
            if (run := journal.load_run(run_id)) is not None:
                check_run(journal, run)
        except ConversationMovedOnError as error:
            refused = error
        if self._folder is not None:
            try:
                check_taking_up(self._folder / JOURNAL, [run_id])
            except ConversationMovedOnError as error:
                if refused is not None and error.args == refused.args:
                    raise
                refused = error
            else:
                if refused is None:
                    return
            text = f"{run_id} may be taken up or not: {refused}"
            self.ledger.broken("the journal gives back what was committed", text)
        if refused is not None:
            raise refused

    def reopened(self) -> Journal | None:
        """The journal's file, opened anew; None where it is the disk itself."""
        if self._folder is None:
            return None
        journal = SqliteJournal(self._folder / JOURNAL)
        self._journals.append(journal)
        return journal

    def _open_journal(self) -> Journal:
        journal: Journal
        if self._folder is None:
            journal = MemoryJournal(self.disk)
        else:
            mover = self._mover
            path = self._folder / JOURNAL
            journal = SqliteJournal(path, file=None if mover is None else mover.place.file)
            if mover is not None:
                vars(journal)["_committer"] = Striking(journal._committer, mover)
        self._journals.append(journal)
        return WatchedJournal(
            journal,
            self.disk,
            self.oracle,
            self._faults,
            twin=self._folder is not None,
            mover=self._mover,
        )

    def _kinds(self, each_is_asked: bool) -> Kinds:
        """The shipped table, whose actors host what is watched.

        Where each executor is asked, each of ours is there from the start.
        """
        executors = {
            name: replace(
                kind,
                host=self._host,
                starts_with_cell=kind.starts_with_cell or (each_is_asked and name != CUSTOM),
            )
            for name, kind in KINDS.items()
            if kind.host is host_executor
        }
        beside = {
            STREAMS: replace(KINDS[STREAMS], host=partial(WatchedStreams, self.beside)),
            EMBEDDED_MODEL: replace(
                KINDS[EMBEDDED_MODEL], host=partial(SimulatedModel, self.beside)
            ),
            COMPACTION_WORKER: replace(KINDS[COMPACTION_WORKER], host=self._worker),
        }
        return {**KINDS, **executors, **beside}

    def _worker(self, place: Place) -> WatchedWorker:
        return WatchedWorker(self.oracle.summarizing, place, self._counter)

    def _host(self, place: Place) -> ExecutorHost:
        return ExecutorHost(None if place.slot.code else self._executor_at(place), place)

    def _executor_at(self, place: Place) -> Executor:
        self.ours.add(current_process())
        executor: Executor
        match place.slot.executor:
            case "repair":
                executor = Repair(RunReaper(RUN_VARIABLE).end_run)
            case "compaction":
                executor = Compaction()
            case "stop_decision":
                executor = StopDecision()
            case _:
                executor = AgentTurn(
                    AgentTurnServices(
                        counter_for=lambda _: self._counter,
                        clock=self._clock,
                        in_thread=self._in_thread,
                        prepare_workspace=self.oracle.copying.prepare,
                        processes=place.tool_processes,
                        resources=OpenResources(),
                        workers=workers_of(place.tool_processes, self.oracle, self.machine),
                        artifacts_of=self.oracle.keeping.artifacts_of,
                        locks=KeyLocks(self._keys),
                        copies=self.oracle.copying.copies,
                        changed_files=self.oracle.copying.changed_files,
                        **grounds_of(self.oracle.verifying),
                    )
                )
        return WatchedExecutor(executor, self.oracle)

    def _in_thread(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Awaitable[Any]:
        return self.loop.run_in_executor(None, lambda: function(*args, **kwargs))

    def _dispose(self) -> None:
        self.ledger.trace = None
        self.loop.dispose()
        # Work that was left alone belongs to this schedule's loop, which is no more.
        deadline._LEFT.clear()
        for journal in self._journals:
            with suppress(Exception):
                journal.close()
        self.oracle.keeping.dispose()
        self.oracle.copying.dispose()
        if self._mover is not None:
            self._mover.place.remove()
        elif self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def asks_each(seed: int) -> bool:
    """Whether executors that have nothing to do are asked, too, in the schedule of a seed."""
    return Random(f"{seed}/asks each").random() < EACH_IS_ASKED


class FlatCounter:
    """Counts four bytes as a token."""

    async def count(self, text: str) -> int:
        return 1 + len(text) // 4


def _memory() -> str | None:
    """Where files are in memory, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
