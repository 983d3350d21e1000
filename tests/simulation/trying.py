"""Tools that are functions: tried again, with something open, and watched while they are."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated
from weakref import proxy

from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.ports import Tool
from harness_actors.tools import resource, tool
from tests.simulation.gated_calls import mood_of
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, Workload

TRIED = "a call is tried again as often as it may be, and no more"
PAUSED = "between two tries of a call there is a pause"
OPENED_ONCE = "a resource is opened once in a process"
NOT_OVER = "nothing of a call is tried when it is over"

TRYING = 0.1
"""Share of the schedules in which calls are tried again."""
RETRIES = 2
SHORTEST_PAUSE_S = 0.1
OTHER = "other"
FAILURES = ("0", "0", "1", "1", "2", "3", OTHER)
"""How often a call fails, or that it fails in a way that is not worth another try."""
OPENS_IN_S = 0.2


def plan_tries(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, perhaps with calls that are tried again."""
    chance = Random(f"{seed}/tries")
    if chance.random() >= TRYING:
        return workload
    return replace(
        workload, runs={name: _trying(chance, run) for name, run in workload.runs.items()}
    )


def _trying(chance: Random, run: PlannedRun) -> PlannedRun:
    return replace(
        run,
        rounds=tuple(
            _with_tries(chance, one) if chance.random() < 0.6 else one for one in run.rounds
        ),
    )


def _with_tries(chance: Random, planned: PlannedRound) -> PlannedRound:
    calls = list(planned.calls)
    takes_s = chance.choice((0.0, 0.05, 0.3))
    calls.insert(chance.randint(0, len(calls)), PlannedTool("flaky", takes_s))
    return replace(planned, calls=tuple(calls))


@dataclass
class Tries:
    """The tries of one call.

    Attributes:
        call: The call.
        made: How many there were.
        failed_at: When the newest failed, in virtual seconds; None where none has.
    """

    call: Happening
    made: int = 0
    failed_at: float | None = None


class Trying:
    """Watches the tries of calls.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._seed = seed
        self._lines: set[SimulatedProcess] = set()
        self._tries: dict[str, Tries] = {}
        self.tool = _flaky(self)

    def begins(self, call: Happening) -> None:
        """A call begins, which may be tried again."""
        self._tries[call.key] = Tries(call)

    def opens(self) -> "Line":
        """A resource is opened here."""
        process = current_process()
        if process in self._lines:
            self._ledger.broken(OPENED_ONCE, f"{process!r} opens another one")
        self._lines.add(process)
        return Line(process)

    def begin_try(self, key: str, line: "Line") -> None:
        """A call is tried, with what is open."""
        tries, now = self._tries[key], self._ledger.loop.time()
        tries.made += 1
        if line.process is not current_process():
            self._ledger.broken(OPENED_ONCE, f"{key} is given what {line.process!r} has open")
        if tries.failed_at is not None and now < tries.failed_at + SHORTEST_PAUSE_S:
            text = f"{key} is tried again {now - tries.failed_at:.3f} s after it failed"
            self._ledger.broken(PAUSED, text)
        if tries.call.let_go or not tries.call.is_open:
            self._ledger.broken(NOT_OVER, f"{key} is tried again, and is over")
        failures = self._failures(key)
        most = 1 if failures == OTHER else 1 + min(RETRIES, int(failures))
        if tries.made > most:
            self._ledger.broken(TRIED, f"{key} is tried {tries.made} times of {most}")

    def end_try(self, key: str) -> None:
        """It has done what it can.

        Raises:
            ConnectionError: Another try may mend that.
            ValueError: No other one will.
        """
        tries, failures = self._tries[key], self._failures(key)
        if failures == OTHER:
            raise ValueError(key)
        if tries.made <= int(failures):
            tries.failed_at = self._ledger.loop.time()
            raise ConnectionError(key)

    def failed(self, key: str) -> None:
        """A call has failed for good."""
        tries, failures = self._tries[key], self._failures(key)
        if failures != OTHER and tries.made <= min(RETRIES, int(failures)):
            self._ledger.broken(TRIED, f"{key} fails after {tries.made} tries")

    def _failures(self, key: str) -> str:
        return mood_of(self._seed, "tries", key, FAILURES)


class Line:
    """What is open in one process."""

    def __init__(self, process: SimulatedProcess) -> None:
        self.process = process


def _flaky(trying: Trying) -> Tool:
    # `typing` remembers what was annotated with, and so would keep whole schedules.
    watched = proxy(trying)

    @resource
    async def line() -> Line:
        await asyncio.sleep(OPENS_IN_S)
        opened: Line = watched.opens()
        return opened

    @tool(name="flaky", idempotent=True, retries=RETRIES, retry_on=[ConnectionError])
    async def flaky(key: str, takes_s: float, opened: Annotated[Line, line]) -> AsyncIterator[str]:
        """Do something, perhaps at the second or third try."""
        trying.begin_try(key, opened)
        yield f"trying {key}"
        await asyncio.sleep(takes_s)
        trying.end_try(key)
        yield f"done {key}"

    return flaky
