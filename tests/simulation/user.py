"""The user of a schedule: one driver after the other, until every run has ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from harness_actors.actors.runtime import StopMode
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.runtime import CellParts, SimulatedRuntime
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import ActorLostError, CellError, HarnessError, StoreError
from harness_actors.events import RunCompleted, RunParked
from harness_actors.records import RunSpec
from tests.simulation.agents import task_of
from tests.simulation.ledger import Ledger, Request
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
        broken_commands: Why commands ended before their runs.
    """

    cursor: int | None = None
    ended: set[str] = field(default_factory=set)
    submitted: set[str] = field(default_factory=set)
    asked: dict[str, int] = field(default_factory=dict)
    broken_commands: list[str] = field(default_factory=list)


class User:
    """Runs drivers.

    Args:
        workload: What is wanted.
        ray: Where cells are started.
        parts: What they are made of.
        ledger: Told what was told.
        programs: The agents, by name, and their blobs.
        chance: The user's.
        settled: Awaited when all runs have ended, while the cell is up still.
    """

    def __init__(
        self,
        workload: Workload,
        ray: SimulatedRay,
        parts: CellParts,
        ledger: Ledger,
        programs: Mapping[str, tuple[Workflow, bytes]],
        chance: Random,
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self.settled = settled
        self.book = Book()
        self._workload = workload
        self._ray = ray
        self._parts = parts
        self._ledger = ledger
        self._programs = programs
        self._chance = chance
        self._driver: SimulatedProcess | None = None
        self._died: asyncio.Event | None = None
        self.runtime: SimulatedRuntime | None = None
        self._cells: list[SimulatedActor] = []

    async def live(self) -> None:
        """Begin one command after the other, until every run has ended."""
        number = 0
        while len(self.book.ended) < len(self._workload.runs):
            number += 1
            await self._command(f"command-{number}")
            await asyncio.sleep(0.1 + self._chance.random())

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
                self._ledger.note(driver, f"{command} ends: {error}")
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
            custom=tuple(workflow.executors),
        )

    def code_of(self, plan: PlannedRun) -> dict[str, bytes]:
        return {plan.program: self._programs[plan.program][1]}


class Driver:
    """One command: submits what is missing, takes up what is left, and follows all."""

    def __init__(self, user: User, command: str) -> None:
        self._user = user
        self._book = user.book
        self._ledger = user._ledger
        self._command = command
        self._ended: dict[str, asyncio.Event] = {}
        self._parked: dict[str, asyncio.Event] = {}
        for run_id in user._workload.runs:
            self._ended[run_id], self._parked[run_id] = asyncio.Event(), asyncio.Event()

    async def live(self) -> None:
        self._runtime = runtime = await self._user.open(self._command)
        if self._book.cursor is None:
            self._book.cursor = await runtime.position()
        try:
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._follow())
                chains = [
                    group.create_task(self._work(chain))
                    for chain in self._user._workload.conversations()
                ]
                await asyncio.wait(chains)
                following.cancel()
            if len(self._book.ended) == len(self._user._workload.runs):
                await self._user.settled()
        except BaseExceptionGroup as failures:
            raise _first(failures) from None

    async def _follow(self) -> None:
        while True:
            assert self._book.cursor is not None
            happened = await self._runtime.happened(self._book.cursor)
            self._book.cursor = happened.cursor
            for event in happened.events:
                self._ledger.told.append(event)
                if isinstance(event.event, RunCompleted):
                    self._book.ended.add(event.run_id)
                    self._ended[event.run_id].set()
                    if event.run_id not in happened.results:
                        self._ledger.broken("who follows misses nothing", f"end of {event.run_id}")
                elif isinstance(event.event, RunParked):
                    self._parked[event.run_id].set()

    async def _work(self, chain: list[PlannedRun]) -> None:
        for plan in chain:
            headings = {h.run_id: h for h in await self._runtime.headings()}
            heading = headings.get(plan.run_id)
            if heading is not None and heading.end is not None:
                self._book.ended.add(plan.run_id)
                continue
            if heading is None and plan.run_id in self._book.submitted:
                self._ledger.broken("what was acknowledged is on disk", plan.run_id)
            if heading is None:
                await asyncio.sleep(plan.after_s)
                code = self._user.code_of(plan)
                await self._runtime.submit([self._user.spec_of(plan)], code=code, secrets={})
                self._book.submitted.add(plan.run_id)
            else:
                await self._resume(plan.run_id)
            await self._see_through(plan)

    async def _see_through(self, plan: PlannedRun) -> None:
        """Follow a run to its end; stop it as planned, and take it up when it has parked."""
        stopping = asyncio.ensure_future(self._stop(plan))
        ended = asyncio.ensure_future(self._ended[plan.run_id].wait())
        try:
            while not ended.done():
                parked = asyncio.ensure_future(self._parked[plan.run_id].wait())
                waiting: set[asyncio.Future[object]] = {ended, parked}  # type: ignore[arg-type]
                if not stopping.done():
                    waiting.add(stopping)  # type: ignore[arg-type]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    stopping.result()
                if parked.done() and not ended.done():
                    self._parked[plan.run_id].clear()
                    chance = self._user._chance
                    await asyncio.sleep(chance.random() * chance.choice((0.1, 0.5, 8.0)))
                    await self._resume(plan.run_id)
                parked.cancel()
        finally:
            if not stopping.cancel() and not stopping.cancelled():
                stopping.exception()  # it says no more than all the others do
            ended.cancel()

    async def _stop(self, plan: PlannedRun) -> None:
        asked = self._book.asked.setdefault(plan.run_id, 0)
        for stop in plan.stops[asked:]:
            await asyncio.sleep(stop.after_s)
            self._book.asked[plan.run_id] += 1
            await self._request(plan.run_id, stop.mode)
            if stop.resume and stop.mode != "cancel":
                await self._resume(plan.run_id)

    async def _resume(self, run_id: str) -> None:
        await self._request(run_id, "resume")

    async def _request(self, run_id: str, what: StopMode | Literal["resume"]) -> None:
        request = Request(run_id, what, self._ledger.loop.time())
        self._ledger.requests.append(request)
        if what == "resume":
            await self._runtime.resume([run_id], secrets={})
        else:
            await self._runtime.stop([run_id], what)
        request.done_at = self._ledger.loop.time()


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one of several failures that says most: ours before others."""
    ours, others = failures.split(HarnessError)
    group: BaseException = others or ours or failures
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
