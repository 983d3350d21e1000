"""The user of a schedule: one driver after the other, until every run has ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from harness_actors.actors.simulated.cell import CellParts
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.runtime import SimulatedRuntime
from harness_actors.agents import custom_of
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import ActorLostError, CellError, StoreError
from harness_actors.records import RunSpec
from tests.simulation.agents import task_of
from tests.simulation.beside import Beside
from tests.simulation.driver import Driver
from tests.simulation.oracle import Oracle
from tests.simulation.workload import PlannedRun, Workload

DRIVER_DIES_WITH_CELL_S = 2.4


@dataclass
class Book:
    """What a user remembers, whatever becomes of its drivers.

    Attributes:
        cursor: Up to where it was told what happened; None before the first time.
        ended: Runs whose end it was told.
        submitted: Runs whose submission was acknowledged.
        asked: How many of a run's stops were asked for.
        meddled: The same of those that are asked of its tree.
        broken_commands: Why commands ended before their runs.
    """

    cursor: int | None = None
    ended: set[str] = field(default_factory=set)
    submitted: set[str] = field(default_factory=set)
    asked: dict[str, int] = field(default_factory=dict)
    meddled: dict[str, int] = field(default_factory=dict)
    broken_commands: list[str] = field(default_factory=list)


class User:
    """Runs drivers.

    Args:
        workload: What is wanted.
        ray: Where cells are started.
        parts: What they are made of.
        oracle: Told what was asked, and what was told.
        programs: The agents, by name, and their blobs.
        chance: The user's.
        people: That of those who answer its runs.
        settled: Awaited when all runs have ended, while the cell is up still.
        check_taking_up: Raises where a run may not be taken up, as harnesses find out.
        beside: Told why cells stop.
    """

    def __init__(
        self,
        workload: Workload,
        ray: SimulatedRay,
        parts: CellParts,
        oracle: Oracle,
        programs: Mapping[str, tuple[Workflow, bytes]],
        chance: Random,
        people: Random,
        settled: Callable[[], Awaitable[None]],
        check_taking_up: Callable[[str], None],
        beside: Beside,
    ) -> None:
        self.settled = settled
        self.check_taking_up = check_taking_up
        self._beside = beside
        self.there = asyncio.Event()
        """The journal is at its path; the next command waits for that."""
        self.there.set()
        self.book = Book()
        self._workload = workload
        self._ray = ray
        self._parts = parts
        self._oracle = oracle
        self._ledger = oracle.ledger
        self._programs = programs
        self._chance = chance
        self._people = people
        self._driver: SimulatedProcess | None = None
        self._died: asyncio.Event | None = None
        self.runtime: SimulatedRuntime | None = None
        self._cells: list[SimulatedActor] = []

    async def live(self) -> None:
        """Begin one command after the other, until every run has ended."""
        number = 0
        while len(self.book.ended) < len(self._workload.runs):
            number += 1
            await self.there.wait()
            await self._command(f"command-{number}")
            # Meanwhile a cell that outlived its driver goes on, or dies, by itself.
            away_s = 30.0 if self._chance.random() < 0.2 else 1.0
            await asyncio.sleep(0.1 + away_s * self._chance.random())

    async def _command(self, command: str) -> None:
        self._driver = driver = self._ray.machine.spawn("driver")
        over = asyncio.Event()
        # Of the world: it is set when the driver dies, too.
        driver.on_death = over.set

        async def main() -> None:
            try:
                await self._clear_name()
                await Driver(self, command).live()
            except (StoreError, CellError, ActorLostError) as error:
                self.book.broken_commands.append(str(error))
                if "does not end" in str(error):
                    # On this machine whatever is killed ends.
                    self._ledger.broken("what hangs is killed", str(error))
                self._ledger.note(driver, f"{command} ends: {error}")
                cell = self._ledger.coordinator
                if cell is not None and cell.failure is not None:
                    self._beside.cell_stopped(cell.failure)
            finally:
                if self.runtime is not None:
                    await self.runtime.close()
                over.set()

        driver.context.run(self._ray.loop.create_task, main())
        await over.wait()
        self._ray.machine.end_process(driver)

    async def _clear_name(self) -> None:
        """End the coordinator of an earlier command, as its name must be free."""
        for actor in self._cells:
            if not actor.dead:
                self._ray.kill(actor)
            await actor.buried.wait()
        self._cells.clear()

    async def open(self, command: str) -> SimulatedRuntime:
        runtime = await SimulatedRuntime.open(self._ray, self._parts, command, self._cells.append)
        self.runtime = runtime
        return runtime

    def kill_driver(self) -> None:
        """SIGKILL; under a Ray of its own, everything of the cell dies with it."""
        driver, self._driver = self._driver, None
        if driver is None or driver.gone:
            return
        self._ledger.note("!", f"{driver!r} is killed")
        if self._chance.random() < 0.5:
            for actor in self._ray.actors:
                actor.restarts = False
                self._ray.machine.kill_soon(actor.process, DRIVER_DIES_WITH_CELL_S)
        self._ray.machine.end_process(driver)

    # ---- for the drivers --------------------------------------------------------------

    def spec_of(self, plan: PlannedRun) -> RunSpec:
        workflow, _ = self._programs[plan.program]
        return RunSpec(
            run_id=plan.run_id,
            conversation_id=plan.conversation_id,
            task=(task_of(plan.run_id),),
            code=plan.program,
            config=plan.config,
            edges=workflow.edges,
            custom=custom_of(workflow, plan.config),
            keys=plan.keys,
            workspace=self._oracle.copying.workspace_of(plan.run_id),
        )

    def code_of(self, plan: PlannedRun) -> dict[str, bytes]:
        return {plan.program: self._programs[plan.program][1]}
