"""Executors of a user's own: each does one thing that such executors may do."""

import asyncio
from functools import partial
from typing import Any

from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.coordination.graph import HarnessWorkflowBuilder, Workflow
from harness_actors.events import CustomEvent
from harness_actors.executors import Repair, StopDecision
from harness_actors.messages import Message
from harness_actors.ports import Agent, Executor, RunContext
from harness_actors.signals import (
    CompactionComplete,
    CustomSignal,
    Outcome,
    Parked,
    RepairTrigger,
    Signal,
)
from harness_actors.state import AGENT_TURN, COMPACTION, STOP_DECISION, StateKey
from harness_actors.tools.reaping import RunReaper
from harness_actors.turn.services import RUN_VARIABLE
from tests.simulation.observing import Place
from tests.simulation.oracle import Oracle
from tests.simulation.workflows import JUDGED, PlannedExecutor, PlannedWorkflow, begun_of, visits_of

SLOW_S = 4.0
FLAW = "the flaw of a user's own executor"


class UsersExecutor:
    """Counts its visits and passes on what it got.

    A visit is counted in the change that comes with the answer: there are as many on disk as
    there are answers.
    """

    reads_log = True

    def __init__(self, planned: PlannedExecutor, oracle: Oracle) -> None:
        self.name = planned.name
        self.visits: StateKey[int] = StateKey(visits_of(planned.name), int, planned.name, "set", 0)
        self.reads: tuple[StateKey[Any], ...] = (self.visits,)
        self._planned = planned
        self._oracle = oracle

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        with self._oracle.serving(context, self.name):
            visit = context.get(self.visits) + 1
            outcome = await self._answer(signal, context, visit)
            if not isinstance(outcome, Parked):
                context.set(self.visits, visit)
            return outcome

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        await asyncio.sleep(0.01)
        return signal


class Tally(UsersExecutor):
    """Counts what it begins, too, and has that on disk before it goes on."""

    def __init__(self, planned: PlannedExecutor, oracle: Oracle) -> None:
        super().__init__(planned, oracle)
        self.begun: StateKey[int] = StateKey(begun_of(self.name), int, self.name, "increment", 0)

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        context.increment(self.begun, 1)
        await context.flush()
        return await super()._answer(signal, context, visit)


class Scribe(UsersExecutor):
    """Notes each visit where people look: as an event, and in the log where that may be."""

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        context.emit(CustomEvent(name=self.name, data={"visit": visit}))
        if self._planned.place in (AGENT_TURN, STOP_DECISION):
            # Elsewhere a call may be open, whose result must come first.
            context.add_message(Message.user(f"note {visit} of {self.name}"))
        return await super()._answer(signal, context, visit)


class Observer(UsersExecutor):
    """Looks three times at what changes each time, and acts on what it saw.

    The first is on disk before it goes on, the second on its way, the third comes with the answer.
    """

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        for number in (1, 2, 3):
            place = (context.spec.run_id, self.name, visit, number)
            seen = await context.observe("number", None, partial(self._look, place))
            self._oracle.observing.acts(place, seen)
            data = {"visit": visit, "number": number, "seen": seen}
            context.emit(CustomEvent(name=self.name, data=data))
            if number == 1:
                await context.flush()
            elif number == 2:
                context.flush()
            await asyncio.sleep(0.05)
        return signal

    async def _look(self, place: Place) -> int:
        await asyncio.sleep(0.02)
        return self._oracle.observing.make(place)


class Courier(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        return CustomSignal(name=self.name, data={"visit": visit})


class Pause(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        await asyncio.sleep(0.3)
        return Parked() if context.parking else signal


class Slow(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        await asyncio.sleep(SLOW_S)
        return signal


class Judge(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        return JUDGED if visit >= self._planned.after else signal


class Flaw(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        if visit >= self._planned.after:
            raise ValueError(FLAW)
        return signal


class Crash(UsersExecutor):
    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        if visit >= self._planned.after:
            self._oracle.machine.end_process(current_process())
            await asyncio.Event().wait()
        return signal


class Summary:
    """A compaction of the user's own, which looks at the log itself."""

    name = COMPACTION
    reads: tuple[StateKey[Any], ...] = ()
    reads_log = True

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        return CompactionComplete(tokens=sum(message.tokens for message in context.log))


class Replacement(UsersExecutor):
    """Stands in the place of one of ours, and does what that does."""

    def __init__(self, planned: PlannedExecutor, oracle: Oracle) -> None:
        super().__init__(planned, oracle)
        self._place = planned.place
        self._inner: dict[SimulatedProcess, Executor] = {}
        """By process: what one awaits is awaited by no other, for whose tasks end with it."""
        self.reads = (*self.reads, *_in_place_of(planned.place).reads)

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        process = current_process()
        if process not in self._inner:
            self._inner[process] = _in_place_of(self._place)
        return await self._inner[process].handle(signal, context)


class Restless(UsersExecutor):
    """Stands in the place of the stop decision, and ends nothing."""

    async def _answer(self, signal: Signal, context: RunContext, visit: int) -> Outcome:
        return RepairTrigger()


def _in_place_of(name: str) -> Executor:
    match name:
        case "repair":
            return Repair(RunReaper(RUN_VARIABLE).end_run)
        case "compaction":
            return Summary()
        case _:
            return StopDecision()


_KINDS: dict[str, type[UsersExecutor]] = {
    "tally": Tally,
    "scribe": Scribe,
    "observer": Observer,
    "courier": Courier,
    "pause": Pause,
    "slow": Slow,
    "judge": Judge,
    "flaw": Flaw,
    "crash": Crash,
    "replacement": Replacement,
    "restless": Restless,
}


def build_workflow(agent: Agent, planned: PlannedWorkflow, oracle: Oracle) -> Workflow:
    """A workflow as it is planned; the default for an empty plan."""
    builder = HarnessWorkflowBuilder(agent)
    for one in planned:
        executor = _KINDS[one.kind](one, oracle)
        if one.name == one.place:
            builder.replace(one.place, executor)
        else:
            builder.insert_after(one.place, executor)
    return builder.build()
