"""The processes of a simulated machine: they are stopped, killed, and seen gone."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from harness_actors.actors.processes import COMPANION_ROLE, COMPANION_S
from harness_actors.actors.simulated.lanes import LANE, Lane
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.records import ProcessMark
from harness_actors.turn.services import RUN_VARIABLE

NODE = "simulated"
HANGS = 0.05
"""Share of supervisors that do not end with their actor."""
KEPT = 0.3
"""Share of a tool's processes that end with a supervisor that is killed."""

Note = Callable[[str, str], None]
"""Told who did what, for a trace."""


class SimulatedProcess(Lane):
    """A process with its own steps.

    Args:
        mark: How the journal knows it.
        parent: Whose child it is; None for one that the user started.
    """

    __slots__ = (
        "awaited",
        "companion",
        "environment",
        "exit_code",
        "exited",
        "mark",
        "on_death",
        "parent",
        "run_id",
        "started",
        "term",
    )

    def __init__(self, mark: ProcessMark, parent: "SimulatedProcess | None") -> None:
        super().__init__()
        self.mark = mark
        self.parent = parent
        self.companion: SimulatedProcess | None = None
        """The supervisor of its tools, which outlives it by a little."""
        self.on_death: Callable[[], None] | None = None
        self.awaited: list[tuple[asyncio.Future[None], Lane]] = []
        self.term = 0
        self.started: list[SimulatedProcess] = []
        """Of a supervisor: the processes that it has."""
        self.environment: Mapping[str, str] = {}
        self.run_id = ""
        """The run that a tool's process was started for."""
        self.exit_code = -9
        self.exited: asyncio.Event | None = None
        """Of a tool's process: it has ended, and what it started may go on."""

    def __repr__(self) -> str:
        return f"{self.mark.role}/{self.mark.pid}"


def current_process() -> SimulatedProcess:
    """Whose step this is.

    Raises:
        LookupError: It belongs to the world, and not to a process.
    """
    lane = LANE.get()
    if not isinstance(lane, SimulatedProcess):
        raise LookupError("this step belongs to no process")
    return lane


class SimulatedMachine:
    """Answers the `Processes` port: one machine, on which a pid may be given again.

    Args:
        loop: Whose lanes the processes are.
        chance: Says how long things take.
        note: Told of starts and deaths; None tells nobody.
    """

    def __init__(self, loop: SimulatedLoop, chance: Random, note: Note | None = None) -> None:
        self.loop = loop
        self.chance = chance
        self.note = note
        self.processes: list[SimulatedProcess] = []
        """All that ever were, oldest first."""
        self.tools: list[SimulatedProcess] = []
        """Those that tools started, and that are there still."""
        self.deaths = 0
        """How many have ended, those of tools left out."""
        self._alive: dict[int, SimulatedProcess] = {}

    def spawn(self, role: str, parent: SimulatedProcess | None = None) -> SimulatedProcess:
        """Start a process; nothing runs in it yet."""
        # The lowest that is free: so pids are given again, as on a machine that is up for long.
        pid = next(pid for pid in range(100, 10_000) if pid not in self._alive)
        started = int(self.loop.time() * 100) * 1000 + len(self.processes)
        mark = ProcessMark(role=role, node=NODE, pid=pid, started=started)
        process = SimulatedProcess(mark, parent)
        self._alive[pid] = process
        self.processes.append(process)
        if self.note is not None:
            self.note(repr(process), "started")
        return process

    def end_process(self, process: SimulatedProcess) -> None:
        """It is gone, at once and without a word. Its children live on by themselves."""
        if process.gone:
            return
        if self.note is not None:
            self.note(repr(process), "is gone")
        self.loop.end_lane(process)
        self.deaths += not process.run_id
        del self._alive[process.mark.pid]
        for future, lane in process.awaited:
            if not lane.gone:
                self.loop.call_soon(_tell, future, context=lane.context)
        if process.companion is not None:
            # It sees its pipe close. Seldom it is late, or hangs and must be killed.
            how = self.chance.random()
            late = 8.0 if how < 0.1 else 0.9
            if how >= HANGS:
                self._later(self._end_in_order, process.companion, late * self.chance.random())
        if process in self.tools:
            self.tools.remove(process)
        if process.exited is not None:
            process.exited.set()
        for child in process.started:
            # It was killed: of what it had some are ended all the same, and some go on.
            if not child.gone and self.chance.random() < KEPT:
                self._end_later(child, 0.5 * self.chance.random())
        if process.on_death is not None:
            process.on_death()

    def _end_in_order(self, supervisor: SimulatedProcess) -> None:
        """It ends what it has, and then itself."""
        if not supervisor.gone:
            for child in supervisor.started:
                self.end_process(child)
            self.end_process(supervisor)

    def hand_over(self, process: SimulatedProcess, supervisor: SimulatedProcess) -> None:
        """A process of a tool was started, below a supervisor."""
        self.tools.append(process)
        supervisor.started.append(process)

    def _end_later(self, process: SimulatedProcess, seconds: float) -> None:
        self._later(self.end_process, process, seconds)

    def _later(
        self, end: Callable[[SimulatedProcess], None], process: SimulatedProcess, seconds: float
    ) -> None:
        self.loop.call_later(seconds, end, process, context=self.loop.world.context)

    def kill_soon(self, process: SimulatedProcess, within_s: float) -> None:
        """Kill it at a time of chance within so many seconds; until then it goes on."""
        self._end_later(process, within_s * self.chance.random())

    def stop(self, process: SimulatedProcess) -> None:
        """SIGSTOP: it is there, and does nothing."""
        if not process.gone and not process.stopped:
            self.loop.stop_lane(process)
            if self.note is not None:
                self.note(repr(process), "is stopped")

    def resume(self, process: SimulatedProcess) -> None:
        """SIGCONT."""
        if not process.gone and process.stopped:
            self.loop.resume_lane(process)
            if self.note is not None:
                self.note(repr(process), "goes on")

    # ---- the port -------------------------------------------------------------------

    async def gone(self, mark: ProcessMark, *, timeout_s: float) -> bool:
        process = self._find(mark)
        if process is None:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self.until_gone(process)
            return True
        except TimeoutError:
            return False

    def kill(self, mark: ProcessMark) -> None:
        process = self._find(mark)
        if process is not None:
            self.kill_soon(process, 0.05)

    def end(
        self, marks: Iterable[ProcessMark], *, journal: Path, timeout_s: float
    ) -> list[ProcessMark]:
        left = [process for mark in marks if (process := self._find(mark)) is not None]
        for process in left:
            if process.mark.role.startswith(COMPANION_ROLE):
                # By itself, with its host; else it is killed.
                self._end_later(process, COMPANION_S)
            else:
                self.kill_soon(process, 0.05)
        if left:
            self.loop.block_until(lambda: all(process.gone for process in left))
        return []

    async def end_tools(self, run_ids: Sequence[str]) -> None:
        await self.end_carriers(RUN_VARIABLE, run_ids)

    # ---- beside it ------------------------------------------------------------------

    async def until_gone(self, process: SimulatedProcess) -> None:
        """Return when a process is gone, once its end can be seen."""
        if not process.gone:
            future: asyncio.Future[None] = self.loop.create_future()
            process.awaited.append((future, LANE.get()))
            await future

    async def end_carriers(self, name: str, values: Collection[str]) -> int:
        """Kill what tools started with one of some values in an environment variable.

        Returns:
            How many there were, when they are gone.
        """
        left = [process for process in self.tools if process.environment.get(name) in values]
        for process in left:
            self.kill_soon(process, 0.05)
        for process in left:
            await self.until_gone(process)
        return len(left)

    def _find(self, mark: ProcessMark) -> SimulatedProcess | None:
        process = self._alive.get(mark.pid)
        return process if process is not None and process.mark == mark else None


def _tell(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
