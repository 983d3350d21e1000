"""Tools in worker processes: planned, done in processes of their own, and watched there."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from harness_actors.actors.simulated.lanes import LANE
from harness_actors.actors.simulated.processes import SimulatedMachine, SimulatedProcess
from harness_actors.actors.simulated.tools import SimulatedToolProcess, SimulatedToolProcesses
from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext, ToolProcesses
from harness_actors.tools.workers.channel import Answer, Hello, Job
from harness_actors.tools.workers.pool import WorkerPool
from harness_actors.tools.workers.texts import WorkerTexts
from tests.simulation.ledger import Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

if TYPE_CHECKING:
    from tests.simulation.oracle import Oracle

ONE_CALL = "a worker process does one call at a time, and none when it has misbehaved"
MOST = "no more worker processes are at work than there may be"
KILLED = "nothing of a call goes on in its worker process when it is over"

WORKER = "worker"
WORKING = 0.12
"""Share of the schedules in which tools run in worker processes."""
LABOURS: tuple[ToolKind, ...] = (
    *("labour", "labour", "labour", "labour"),
    *("labour_long", "labour_crash", "labour_mess"),
)
"""`labour_long`: longer than it may; `labour_crash`: its process dies; `labour_mess`: it leaves
something running there."""
LONG_S = 4.0
TIMEOUT_S = 1.5
MOST_WORKERS = (1, 1, 2)
"""How many there are at a host, in which share of the schedules."""
STARTS_IN_S = 0.05
ANSWERS_IN_S = 0.001


def plan_workers(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, perhaps with tools in worker processes."""
    chance = Random(f"{seed}/workers")
    if chance.random() >= WORKING:
        return workload
    return replace(
        workload, runs={name: _working(chance, run) for name, run in workload.runs.items()}
    )


def _working(chance: Random, run: PlannedRun) -> PlannedRun:
    rounds = [_with_labour(chance, one) if chance.random() < 0.6 else one for one in run.rounds]
    return replace(run, rounds=tuple(rounds))


def _with_labour(chance: Random, planned: PlannedRound) -> PlannedRound:
    calls = list(planned.calls)
    for _ in range(chance.choice((1, 2, 3))):
        takes_s = chance.choice((0.01, 0.5, 1.2))
        calls.insert(chance.randint(0, len(calls)), PlannedTool(chance.choice(LABOURS), takes_s))
    return replace(planned, calls=tuple(calls))


class Working:
    """Watches the worker processes of a schedule.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.

    Attributes:
        most: How many worker processes a host may have.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.most = Random(f"{seed}/pool").choice(MOST_WORKERS)
        self._ledger = ledger
        self._at_work: dict[SimulatedProcess, str] = {}
        self._messy: set[SimulatedProcess] = set()

    def begins(self, process: SimulatedProcess, key: str) -> None:
        """A worker begins with a call."""
        if process in self._at_work:
            text = f"{process!r} begins {key} beside {self._at_work[process]}"
            self._ledger.broken(ONE_CALL, text)
        if process in self._messy:
            self._ledger.broken(ONE_CALL, f"{process!r} begins {key}, and has left something")
        self._at_work[process] = key
        beside = [
            other for other in self._at_work if other.parent is process.parent and not other.gone
        ]
        if len(beside) > self.most:
            self._ledger.broken(MOST, f"{beside} are at work")

    def does(self, key: str) -> None:
        """A worker does what its call is for."""
        call = next(call for call in reversed(self._ledger.tools) if call.key == key)
        if not call.process.gone and (call.let_go or not call.is_open):
            self._ledger.broken(KILLED, f"{call.what} of {key}, which {call.ending or 'is cut'}")

    def ends(self, process: SimulatedProcess, *, messy: bool) -> None:
        """A worker has done its call."""
        del self._at_work[process]
        if messy:
            self._messy.add(process)


class SimulatedWorker:
    """A worker process of a simulated host.

    Args:
        started: The process.
        oracle: Told of what it does.
        machine: Where it is.
    """

    def __init__(
        self, started: SimulatedToolProcess, oracle: "Oracle", machine: SimulatedMachine
    ) -> None:
        self.known: set[str] = set()
        self.behaves = True
        self._started = started
        self._process = started.process
        self._oracle = oracle
        self._machine = machine
        self._ended = asyncio.ensure_future(started.wait())

    @property
    def is_alive(self) -> bool:
        return not self._ended.done()

    def fits(self, marks: Mapping[str, str]) -> bool:
        return True

    async def call(self, job: Job, context: ToolContext) -> Answer:
        """Have it do a call."""
        loop = self._machine.loop
        answer: asyncio.Future[Answer] = loop.create_future()
        loop.call_soon(self._begin, job, answer, LANE.get(), context=self._process.context)
        await asyncio.wait((answer, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ToolError(f"{job.name!r} was cut off: its worker process ended")
        self.behaves = answer.result()["behaves"] and self.is_alive
        return answer.result()

    async def end(self) -> None:
        self.behaves = False
        await self._started.end()

    def leave(self) -> None:
        self._machine.kill_soon(self._process, 0.3)

    async def gone(self) -> None:
        await asyncio.wait((self._ended,))

    # ---- in the process ---------------------------------------------------------------

    def _begin(self, job: Job, answer: "asyncio.Future[Answer]", host: Any) -> None:
        self._work_on = self._machine.loop.create_task(self._work(job, answer, host))

    async def _work(self, job: Job, answer: "asyncio.Future[Answer]", host: Any) -> None:
        process, working = self._process, self._oracle.working
        given = orjson.loads(job.arguments)
        key: str = given["key"]
        process.environment = dict(job.facts["environment"])
        process.run_id = job.facts["run_id"]
        working.begins(process, key)
        takes_s = LONG_S if job.name == "labour_long" else given["takes_s"]
        await asyncio.sleep(takes_s / 2)
        working.does(key)
        self._oracle.effect(key)
        await asyncio.sleep(takes_s / 2)
        if job.name == "labour_crash":
            self._machine.end_process(process)
            await asyncio.Event().wait()
        messy = job.name == "labour_mess"
        working.ends(process, messy=messy)
        process.environment, process.run_id = {}, ""
        told: Answer = {
            "kind": "returned",
            "text": f"done {key}\n",
            "lost": False,
            "images": [],
            "image_tokens": 0,
            "tries": 1,
            "behaves": not messy,
            "traceback": "",
        }
        self._machine.loop.call_later(ANSWERS_IN_S, _answer, answer, told, context=host.context)


def _answer(answer: "asyncio.Future[Answer]", told: Answer) -> None:
    if not answer.done():
        answer.set_result(told)


def workers_of(
    processes: ToolProcesses | None, oracle: "Oracle", machine: SimulatedMachine
) -> WorkerPool | None:
    """The pool of a host; None where it starts no processes."""
    if not isinstance(processes, SimulatedToolProcesses):
        return None

    async def start(
        processes: ToolProcesses, variables: Mapping[str, str], hello: Hello
    ) -> SimulatedWorker:
        assert isinstance(processes, SimulatedToolProcesses)
        started = processes.start((WORKER,), environment=variables, output=-1, run_id="")
        await asyncio.sleep(STARTS_IN_S)
        return SimulatedWorker(started, oracle, machine)

    return WorkerPool(
        processes,
        environment=dict,
        pack=lambda tool: tool.spec.name.encode(),
        texts=WorkerTexts(describe=_describe, shorten=str),
        most=oracle.working.most,
        start=start,
    )


def _describe(error: BaseException, inline_chars: int | None) -> tuple[str, str]:
    return str(error), ""
