"""How runs get into flight: new ones, and those that an earlier command has left."""

import asyncio
from dataclasses import KW_ONLY, dataclass, field, replace

from harness_actors.actors.runtime import Runtime, StopMode
from harness_actors.agents import Program
from harness_actors.batch.agents import Agents
from harness_actors.batch.brakes import Brakes
from harness_actors.batch.flights import Flight, Flights
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.tally import Tally
from harness_actors.events import ChildrenStarted, RoundCompleted
from harness_actors.records import RunSpec
from harness_actors.setups import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyFlight:
    """A run that can be submitted."""

    flight: Flight
    spec: RunSpec
    program: Program
    setup: Setup


@dataclass(eq=False)
class Starting:
    """Has runs served, and stops them: those, too, that are on their way to the runtime.

    Args:
        runtime: Where the runs run.
        agents: Who runs them.
        directory: Where they work, and what they are made with is noted.
        flights: Told of each before the runtime is.
        tally: Told how many are in flight.
        brakes: Told what those have cost that are taken up.
    """

    runtime: Runtime
    _: KW_ONLY
    agents: Agents
    directory: RunDirectory
    flights: Flights
    tally: Tally
    brakes: Brakes
    _stop_mode: StopMode | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._hidden = self.directory.hidden
        self._submissions = Submissions(self.runtime)

    def prepare(self, flight: Flight) -> ReadyFlight:
        """Make a new run of a task.

        Raises:
            HarnessError: The task or its agent is at fault.
        """
        task = flight.task
        agent = self.agents.for_task(task).held_for(task)
        setup = agent.setup_for(task)
        attempt = replace(flight.attempt, setup=setup.hash)
        flight = Flight(task=task, attempt=attempt)
        spec = agent.spec(
            task,
            run_id=attempt.run_id,
            folder=self.directory.workspace(attempt.run_id),
            hidden=self._hidden,
            note=flight.note,
        )
        return ReadyFlight(flight=flight, spec=spec, program=agent.program, setup=setup)

    async def begin(self, ready: ReadyFlight) -> None:
        """Submit a new run."""
        self.directory.setups.add(ready.setup)
        self._take_off(ready.flight)
        await self._submissions.submit(ready.spec, ready.program)
        await self._stop_late(ready.flight)

    async def go_on(self, flight: Flight, *, told: int) -> None:
        """Take up a run of the journal.

        Args:
            flight: The run.
            told: Up to where the events of the runs have been noted.
        """
        run_id = flight.attempt.run_id
        self._take_off(flight)
        if flight.attempt.counted_usd is None:
            await self._count_rounds(run_id, told)
        await self.runtime.resume([run_id], secrets=self.agents.secrets())
        await self._stop_late(flight)

    async def stop(self, mode: StopMode) -> None:
        """Stop what is in flight, and whatever gets there from now on."""
        self._stop_mode = mode
        await self.runtime.stop(self.flights.run_ids, mode)

    async def _count_rounds(self, run_id: str, told: int) -> None:
        """Count what a run has cost, with all that it has begun."""
        for event in await self.runtime.events(run_id):
            match event.event:
                # What is after that is told to whoever follows.
                case RoundCompleted(cost_usd=cost_usd) if event.position <= told:
                    self.brakes.spend(cost_usd)
                case ChildrenStarted(children=children):
                    for child in children:
                        await self._count_rounds(child["run_id"], told)

    def _take_off(self, flight: Flight) -> None:
        # Before the runtime hears of it: its end may be told before `submit` returns.
        self.flights.take_off(flight)
        self.tally.running = len(self.flights)

    async def _stop_late(self, flight: Flight) -> None:
        """Stop a run that was on its way to the runtime when all others were stopped."""
        run_id = flight.attempt.run_id
        if self._stop_mode is not None and self.flights.is_flying(run_id):
            await self.runtime.stop([run_id], self._stop_mode)


class Submissions:
    """Submits runs to a runtime; those that come while a call is made go with the next."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiting: list[tuple[RunSpec, Program]] = []
        self._calling = asyncio.Lock()

    async def submit(self, spec: RunSpec, program: Program) -> None:
        """Submit a run; returns when the runtime has it.

        Raises:
            HarnessError: The runtime failed. Of several that went together only one raises.
        """
        self._waiting.append((spec, program))
        async with self._calling:
            together, self._waiting = self._waiting, []
            if together:
                await self._runtime.submit(
                    [one for one, _ in together],
                    code={name: kept for _, its in together for name, kept in its.stored.items()},
                    secrets={
                        name: value for _, its in together for name, value in its.secrets.items()
                    },
                )
