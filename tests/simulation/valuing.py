"""Values of a schedule: which runs are to come to one, whether it fits, and what becomes of it."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import orjson

from harness_actors.actors.simulated.processes import SimulatedMachine, current_process
from harness_actors.errors import ToolError
from harness_actors.events import StopDecided
from harness_actors.messages import Message
from harness_actors.outputs import OutputType
from harness_actors.outputs.output_type import CHECK_S, InThread, held
from harness_actors.outputs.words import NOT_CHECKED
from harness_actors.ports import Model
from harness_actors.records import RunChanged
from harness_actors.results import HarnessResult
from harness_actors.state import AGENT_TURN, STOP_DECISION
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.workload import Workload

TYPED = 0.08
"""Share of the schedules whose runs are to come to values."""
FITTING = 0.7
FITS = "a run is done with a value that fits, and with no other"
TOLD = "a model is told in what its value does not fit"
LOOKED_AT = "no value is taken that nobody has looked at"

FLAW = "the type of the output has a flaw"
WORDS = (FLAW, f"it took longer than {CHECK_S:g} s")
"""In the end of a run whose type has failed."""
FLAWED, HANGS, CRASHES = 0.06, 0.03, 0.03
MOST_CRASHES = 2
"""In one run: with one more it would be ended."""
TAKES_S = (0.0, 0.0, 0.01, 0.1, 0.7)

OURS = frozenset({AGENT_TURN, STOP_DECISION})
"""Executors in whose place others may do what they like with values."""


def plan_values(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, perhaps with runs that are to come to values."""
    return replace(workload, typed=Random(f"{seed}/shapes").random() < TYPED)


def value_at(run_id: str, position: int) -> dict[str, Any]:
    """What a model says at a place of its conversation that a run comes to."""
    return {"run": run_id, "at": position}


class Valuing:
    """Says which values fit, and watches what becomes of them.

    Args:
        ledger: Where it is written down.
        machine: Where it happens.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, machine: SimulatedMachine, seed: int) -> None:
        self._ledger = ledger
        self._machine = machine
        self._seed = seed
        self._chance = Random(f"{seed}/valuing")
        self._looked: set[bytes] = set()
        self._crashes: defaultdict[str, int] = defaultdict(int)
        self._said: defaultdict[str, dict[str | None, Any]] = defaultdict(dict)
        """The newest value in a call of each id, by run."""
        self._answered: dict[str, Any] = {}

    def problem(self, value: Mapping[str, Any]) -> str:
        """In what a value does not fit: the same whenever somebody looks."""
        drawn = Random(f"{self._seed}/{value}").random()
        return "" if drawn < FITTING else f"{value['run']} at {value['at']} is too small"

    async def look(self, value: Mapping[str, Any]) -> str:
        """Look at a value; its type may fail, hang, or end its process."""
        mood = self._chance.random()
        await asyncio.sleep(self._chance.choice(TAKES_S))
        if mood < CRASHES and self._crashes[value["run"]] < MOST_CRASHES:
            self._crashes[value["run"]] += 1
            await self._crash()
        if mood > 1 - HANGS:
            await asyncio.Event().wait()
        if mood > 1 - HANGS - FLAWED:
            raise LookupError(FLAW)
        self._looked.add(_key(value))
        return self.problem(value)

    async def _crash(self) -> None:
        process = current_process()
        if process.companion is not None:
            self._machine.end_process(process.companion)
        self._machine.end_process(process)
        await asyncio.Event().wait()

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change of a run is on disk."""
        if OURS.intersection(run.spec.custom):
            return
        run_id = run.spec.run_id
        for message in change.delta.messages:
            if message.role == "assistant":
                self._hear(run_id, message)
            elif message.role == "tool" and message.tool_call_id in self._said[run_id]:
                self._result(run_id, message)
        if any(_is_refusal(event) for event in change.delta.events):
            self._refusal(run_id, change)
        if change.end is not None:
            self._ends(run_id, change.end)

    def _hear(self, run_id: str, message: Message) -> None:
        self._answered[run_id] = None
        for call in message.tool_calls:
            self._said[run_id].pop(call.id, None)
            if call.name == "work_complete":
                self._said[run_id][call.id] = orjson.loads(call.arguments).get("output")
        if not message.tool_calls and message.text.startswith("{"):
            self._answered[run_id] = orjson.loads(message.text)

    def _result(self, run_id: str, message: Message) -> None:
        value = self._said[run_id].pop(message.tool_call_id)
        if value is None:
            return
        if problem := self.problem(value):
            wrong = not message.is_error or (
                message.failure == "failed" and message.text not in (problem, NOT_CHECKED)
            )
        else:
            wrong = message.failure == "failed" and message.text != NOT_CHECKED
        if wrong:
            text = f"{run_id} is told of {value}: {message.text}"
            self._ledger.broken(TOLD if message.is_error else FITS, text)

    def _refusal(self, run_id: str, change: RunChanged) -> None:
        value = self._answered.get(run_id)
        problem = "" if value is None else self.problem(value)
        said = [message.text for message in change.delta.messages if message.role == "user"]
        if problem and not any(problem in text for text in said):
            self._ledger.broken(TOLD, f"{run_id} is told {said} of {value}")

    def _ends(self, run_id: str, end: HarnessResult) -> None:
        value, kind = end.output, end.reason.kind
        ending = f"{run_id} ends {end.status}({kind}) with {value}"
        if value is None:
            if kind in ("completed", "answered"):
                self._ledger.broken(FITS, ending)
            return
        if end.status != "done" or self.problem(value):
            self._ledger.broken(FITS, ending)
        if _key(value) not in self._looked:
            self._ledger.broken(LOOKED_AT, ending)


def _key(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _is_refusal(event: object) -> bool:
    return isinstance(event, StopDecided) and event.reason == "not_accepted"


class DrawnOutput(OutputType):
    """The type of a schedule's runs.

    Args:
        valuing: Says what fits; None until it is known.
    """

    given = None

    def __init__(self, valuing: Valuing | None) -> None:
        self._watched = valuing

    @property
    def _valuing(self) -> Valuing:
        assert self._watched is not None, "it is bound to its schedule before anything happens"
        return self._watched

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"type": "object"}

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"summary": {}, "output": {}}}

    def prompt(self, model: Model) -> str:
        return ""

    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        given = orjson.loads(arguments)
        if problem := await held(partial(self._valuing.look, given["output"])):
            raise ToolError(problem)
        return str(given["summary"])

    async def problem(self, text: str, in_thread: InThread) -> str:
        if not text.startswith("{"):
            return "it is not JSON"
        return str(await held(partial(self._valuing.look, orjson.loads(text))))
