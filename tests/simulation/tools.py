"""The tools of a schedule's agents: each kind does one thing, and is watched while it does."""

import asyncio
from collections.abc import Sequence

import orjson

from harness_actors.actors.simulated.processes import (
    SimulatedMachine,
    SimulatedProcess,
    current_process,
)
from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext, ToolProcess, ToolSpec
from tests.simulation.artifacts import result_of
from tests.simulation.judging import NEEDING, SHELL
from tests.simulation.ledger import Happening
from tests.simulation.oracle import Oracle
from tests.simulation.waves import READS, REPEATED
from tests.simulation.working import LABOURS, TIMEOUT_S, WORKER
from tests.simulation.workload import ToolKind

HANG_S = 3.0
STUBBORN_S = 0.4
DEAF_S = 5.0
LINGERS_S = 30.0
"""How long what a command has started is there, if nobody ends it."""
PARAMETERS = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "takes_s": {"type": "number"},
        "shelf": {"type": "string"},
    },
}

KINDS: tuple[ToolKind, ...] = (
    "look",
    "again",
    "effect",
    "thread",
    "command",
    "fail",
    "hang",
    "stubborn",
    "deaf",
    "crash",
    "crash_again",
    "peek",
    "recall",
    "watch",
    "labour",
    "labour_long",
    "labour_crash",
    "labour_mess",
    "flaky",
)
KEYS: dict[ToolKind, tuple[str, ...]] = {
    "peek": ("shelf:{shelf}",),
    "stow": ("shelf:{shelf}", "shelf:{other}"),
}
TIMEOUTS_S: dict[ToolKind, float] = {"hang": HANG_S, "labour_long": TIMEOUT_S}


class WatchedTool:
    """A tool of one kind."""

    def __init__(self, kind: ToolKind, oracle: Oracle, machine: SimulatedMachine) -> None:
        self.kind = kind
        self._oracle = oracle
        self._machine = machine
        self.spec = ToolSpec(
            name=kind,
            description="A tool.",
            parameters=PARAMETERS,
            effect="read_only" if kind in READS else "local_write",
            idempotent=kind in READS or kind in ("again", "crash_again", "flaky", "write"),
            resource_keys=KEYS.get(kind, ()),
            timeout_s=TIMEOUTS_S.get(kind),
            volatile=kind == "watch",
            needs=(SHELL,) if kind in NEEDING else (),
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        given = orjson.loads(arguments)
        key, takes_s = given["key"], given["takes_s"]
        self._oracle.judging.called(self.kind, key, given)
        self._oracle.passing.called(key, given)
        self._oracle.approving.called(self.kind, key, given)
        call = self._oracle.called(
            self.kind,
            key,
            context,
            idempotent=self.spec.idempotent,
            shelf=given["shelf"] if self.kind == "peek" else "",
        )
        if self.kind in KEYS:
            shelves = given["shelf"] + given.get("other", "")
            self._oracle.shelves.called(call, shelves, reads=self.kind in READS)
        self._oracle.summarizing.called(key, context)
        ledger, seen = self._oracle.ledger, self._oracle.at_once.seen(call)
        try:
            if self.kind in LABOURS:
                assert context.workers is not None
                await context.workers.run(self, arguments, context)
            else:
                await self._work(call, key, takes_s, context)
        except asyncio.CancelledError:
            call.let_go = True
            if self.kind == "stubborn":
                await asyncio.sleep(STUBBORN_S)
            ledger.end(call, "was cut")
            raise
        except ToolError:
            ledger.end(call, "failed")
            raise
        ledger.end(call, "ended")
        self._oracle.at_once.ended(call)
        if self.kind in REPEATED:
            return f"done {key} {seen}"
        return result_of(key, context.artifacts)

    async def _work(self, call: Happening, key: str, takes_s: float, context: ToolContext) -> None:
        match self.kind:
            case "look" | "again" | "peek" | "recall" | "watch":
                await asyncio.sleep(takes_s)
            case "effect" | "stow" | "stubborn":
                await asyncio.sleep(takes_s / 2)
                self._oracle.effect(key)
                await asyncio.sleep(takes_s / 2)
            case "write":
                self._oracle.copying.write(key, context)
            case "thread":
                await context.in_thread(self._oracle.effect, key)
            case "command":
                await self._in_its_process(key, takes_s, context)
            case "fail":
                raise ToolError(f"failed {key}")
            case "flaky":
                await self._try(call, key, takes_s, context)
            case "deaf":
                await deafly(DEAF_S, call)
            case "hang":
                await asyncio.Event().wait()
            case "crash" | "crash_again":
                self._start(key, LINGERS_S, context)
                await asyncio.sleep(takes_s)
                await self._crash()

    async def _try(self, call: Happening, key: str, takes_s: float, context: ToolContext) -> None:
        trying = self._oracle.trying
        trying.begins(call)
        try:
            given = orjson.dumps({"key": key, "takes_s": takes_s}).decode()
            await trying.tool.run(given, context)
        except (ConnectionError, ValueError) as error:
            trying.failed(key)
            raise ToolError(f"failed {key}") from error

    async def _in_its_process(self, key: str, takes_s: float, context: ToolContext) -> None:
        """Have the effect in a process of its own; see `Commands`."""
        process = self._start(key, takes_s, context)
        try:
            code = await process.wait()
        finally:
            await process.end()
        if code:
            raise ToolError(f"the command of {key} ended with {code}")

    def _start(self, key: str, takes_s: float, context: ToolContext) -> ToolProcess:
        assert context.processes is not None
        return context.processes.start(
            ("command", key, str(takes_s)),
            environment=context.environment,
            output=-1,
            run_id=context.run_id,
        )

    async def _crash(self) -> None:
        """Take the process along, and the supervisor that was to end what it has started."""
        process = current_process()
        if process.companion is not None:
            self._machine.end_process(process.companion)
        self._machine.end_process(process)
        await asyncio.Event().wait()


class Commands:
    """What the processes do that tools start."""

    def __init__(self, oracle: Oracle, machine: SimulatedMachine) -> None:
        self._oracle = oracle
        self._machine = machine

    def work(self, process: SimulatedProcess, program: Sequence[str]) -> None:
        if program[0] == WORKER:
            return
        _, key, takes_s = program
        self._machine.loop.call_later(float(takes_s), self._finish, process, key)

    def _finish(self, process: SimulatedProcess, key: str) -> None:
        self._oracle.effect(key)
        process.exit_code = 0
        if process.exited is not None:
            process.exited.set()
        # What it has started in turn goes on, until somebody ends it.
        self._machine.loop.call_later(LINGERS_S, self._machine.end_process, process)


async def deafly(seconds: float, call: Happening | None = None) -> None:
    """Sleep, whoever cancels it; that somebody did is noted of a call."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if call is not None:
                call.let_go = True
            continue
