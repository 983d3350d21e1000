"""The processes of a simulated machine: they are stopped, killed, and seen gone."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random

from harness_actors.actors.simulated.lanes import LANE, Lane
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.records import ProcessMark

NODE = "simulated"

Note = Callable[[str, str], None]
"""Told who did what, for a trace."""


class SimulatedProcess(Lane):
    """A process with its own steps.

    Args:
        mark: How the journal knows it.
        parent: Whose child it is; None for one that the user started.
    """

    __slots__ = ("awaited", "companion", "mark", "on_death", "parent", "term")

    def __init__(self, mark: ProcessMark, parent: "SimulatedProcess | None") -> None:
        super().__init__()
        self.mark = mark
        self.parent = parent
        self.companion: SimulatedProcess | None = None
        """A process of its tools, which outlives it by a little."""
        self.on_death: Callable[[], None] | None = None
        self.awaited: list[tuple[asyncio.Future[None], Lane]] = []
        self.term = 0

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
        del self._alive[process.mark.pid]
        for future, lane in process.awaited:
            if not lane.gone:
                self.loop.call_soon(_tell, future, context=lane.context)
        if process.companion is not None:
            # It sees its pipe close. Seldom it hangs, and must be killed.
            late = 8.0 if self.chance.random() < 0.1 else 0.9
            self._end_later(process.companion, late * self.chance.random())
        if process.on_death is not None:
            process.on_death()

    def _end_later(self, process: SimulatedProcess, seconds: float) -> None:
        self.loop.call_later(seconds, self.end_process, process, context=self.loop.world.context)

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
        future: asyncio.Future[None] = self.loop.create_future()
        process.awaited.append((future, LANE.get()))
        try:
            async with asyncio.timeout(timeout_s):
                await future
            return True
        except TimeoutError:
            return False

    def kill(self, mark: ProcessMark) -> None:
        process = self._find(mark)
        if process is not None:
            self.kill_soon(process, 0.05)

    def end(self, marks: Iterable[ProcessMark], *, timeout_s: float) -> list[ProcessMark]:
        left = [process for mark in marks if (process := self._find(mark)) is not None]
        for process in left:
            self.kill_soon(process, 0.05)
        if left:
            self.loop.block_until(lambda: all(process.gone for process in left))
        return []

    async def end_tools(self, run_ids: Sequence[str]) -> None:
        """Nothing: here, what a tool started always ends with the companion of its host."""

    def _find(self, mark: ProcessMark) -> SimulatedProcess | None:
        process = self._alive.get(mark.pid)
        return process if process is not None and process.mark == mark else None


def _tell(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
