"""Processes that tools start: below a supervisor, and now and then left when that is killed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from harness_actors.actors.processes import COMPANION_ROLE
from harness_actors.actors.simulated.processes import SimulatedMachine, SimulatedProcess
from harness_actors.ports import Cover

Work = Callable[[SimulatedProcess, Sequence[str]], None]
"""What a process does, given its program: called as its first step."""


class SimulatedToolProcess:
    """A process that was started for a tool."""

    stopped = ""

    def __init__(self, machine: SimulatedMachine, process: SimulatedProcess) -> None:
        self._machine = machine
        self.process = process
        self._exited = process.exited = asyncio.Event()

    async def wait(self) -> int:
        await self._exited.wait()
        return self.process.exit_code

    async def end(self) -> int:
        if self.process.gone:
            return 0
        self._machine.kill_soon(self.process, 0.05)
        await self._machine.until_gone(self.process)
        return 1


class SimulatedToolProcesses:
    """Answers the `ToolProcesses` port for the host of one agent turn.

    The supervisor is started at once, as a companion of the host: it ends what it has, and
    then itself, when the host is gone.

    Args:
        machine: Where they live.
        host: The process of the host.
        role: What the host is called.
        work: What processes do.
    """

    def __init__(
        self, machine: SimulatedMachine, host: SimulatedProcess, role: str, work: Work
    ) -> None:
        self._machine = machine
        self._host = host
        self._work = work
        self._supervisor = machine.spawn(COMPANION_ROLE + role, host)
        host.companion = self._supervisor

    def start(
        self,
        program: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        run_id: str,
        cover: Cover | None = None,
    ) -> SimulatedToolProcess:
        process = self._machine.spawn(f"{program[0]} of {run_id}", self._supervisor)
        process.environment = dict(environment)
        process.run_id = run_id
        self._machine.hand_over(process, self._supervisor)
        started = SimulatedToolProcess(self._machine, process)
        self._machine.loop.call_soon(self._work, process, program, context=process.context)
        return started

    def end_run(self, run_id: str) -> None:
        for process in list(self._supervisor.started):
            if process.run_id == run_id:
                self._machine.kill_soon(process, 0.05)

    def close(self) -> None:
        self._machine.kill_soon(self._supervisor, 0.05)
