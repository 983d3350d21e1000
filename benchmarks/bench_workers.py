"""How soon are calls in worker processes done, and how soon is one gone that does not end?

Unit: seconds of 64 calls of 50 ms of one message, above what they take at least (64 × 50 ms by
the number of workers), when no worker is there yet and when all are; seconds from the deadline of
a call that holds on to its interpreter for ever until its process is gone; MB of memory that a
result of 200 MB takes in the process that called, at its peak.

More than 500 ms above the least would mean that starting workers, or waiting for one, costs as
much as the work that they are for; more than a second, that a deadline is none; more than 50 MB,
that one tool can fill the memory of all runs of its process.

    python benchmarks/bench_workers.py [--smoke] [--calls 64] [--repeats 5]
"""

import asyncio
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from benchmarks.measure import peak_mb
from harness_actors.actors.host.shipped_executors import supervised_processes
from harness_actors.actors.host.tool_workers import tool_workers
from harness_actors.messages import ToolCall
from harness_actors.ports import Tool, ToolContext
from harness_actors.tools import tool
from harness_actors.tools.workers.pool import WorkerPool
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call

CALL_S = 0.05
ABOVE_S = 0.5
GONE_WITHIN_S = 1.0
DEADLINE_S = 5.0
"""Time enough for a process to start on a busy machine; only what comes after it counts."""
RESULT_BYTES = 200_000_000
MOST_MB = 50.0


@tool(worker=True, effect="read_only")
def pause() -> str:
    time.sleep(CALL_S)
    return "awake"


@tool(worker=True, effect="read_only", timeout_s=DEADLINE_S)
def hold(path: str) -> None:
    """Never end, in native code that holds on to the interpreter."""
    import ctypes

    Path(path).write_text(str(os.getpid()))
    while True:
        ctypes.PyDLL(None).sleep(1000)


@tool(worker=True, effect="read_only")
def shout() -> str:
    return "x" * RESULT_BYTES


@dataclass
class Found:
    """What was measured, an entry for each repetition.

    Attributes:
        cold_s: Seconds of all calls where no worker was there, above the least.
        warm_s: The same where all were.
        gone_s: Seconds from a deadline until the process is gone.
        result_mb: Memory at the peak.
    """

    cold_s: list[float] = field(default_factory=list)
    warm_s: list[float] = field(default_factory=list)
    gone_s: list[float] = field(default_factory=list)
    result_mb: list[float] = field(default_factory=list)


@contextmanager
def fresh_pool() -> Iterator[WorkerPool]:
    """A pool as an agent turn has it, that has started nothing yet."""
    processes = supervised_processes(own_process=False)
    try:
        yield tool_workers(processes)
    finally:
        processes.close()


async def call(pool: WorkerPool, function: Tool, **arguments: str) -> str:
    """Make one call as a turn does."""
    context = ToolContext(
        run_id="run",
        call_id="call",
        workspace=None,
        in_thread=asyncio.to_thread,
        environment={"HARNESS_RUN_ID": "run"},
        workers=pool,
    )
    asked = ToolCall("call", function.spec.name, json.dumps(arguments))
    return (await run_call(PlannedCall(call=asked, tool=function), context, Due(None))).text


async def above_least_s(pool: WorkerPool, calls: int) -> float:
    """Seconds of so many calls at once, above what they take at least."""
    begun = time.perf_counter()
    told = await asyncio.gather(*(call(pool, pause) for _ in range(calls)))
    took_s = time.perf_counter() - begun
    if set(told) != {"awake"}:
        raise SystemExit(f"a call failed: {set(told)}")
    return took_s - calls * CALL_S / pool.most


async def gone_after_s(pool: WorkerPool, folder: Path) -> float:
    """Seconds from the deadline of a call that does not end until its process is gone."""
    path, begun = folder / "pid", time.perf_counter()
    holding = asyncio.ensure_future(call(pool, hold, path=str(path)))
    gone_at = await asyncio.to_thread(_gone_at, path)
    await holding
    return gone_at - begun - DEADLINE_S


def _gone_at(path: Path) -> float:
    while not (path.exists() and path.read_text()):
        time.sleep(0.005)
    handle = os.pidfd_open(int(path.read_text()))
    watched = select.poll()
    watched.register(handle, select.POLLIN)
    watched.poll()
    os.close(handle)
    return time.perf_counter()


async def resultpeak_mb(pool: WorkerPool) -> float:
    """MB that this process has at its peak, above before, for the result of one call."""
    before = peak_mb(anew=True)
    await call(pool, shout)
    return peak_mb() - before


async def measure(calls: int, repeats: int) -> Found:
    found = Found()
    for _ in range(repeats):
        with fresh_pool() as pool, tempfile.TemporaryDirectory() as folder:
            found.cold_s.append(await above_least_s(pool, calls))
            found.warm_s.append(await above_least_s(pool, calls))
            found.gone_s.append(await gone_after_s(pool, Path(folder)))
            found.result_mb.append(await resultpeak_mb(pool))
            await pool.close()
    return found


def main() -> None:
    options = read_options(__doc__, sizes={"calls": 64}, smoke={"calls": 4})
    found = asyncio.run(measure(options.calls, options.repeats))
    findings = [
        Finding.of(f"{options.calls} calls above the least, cold", found.cold_s, unit="s",
                   at_most=ABOVE_S, computing=True),
        Finding.of(f"{options.calls} calls above the least, warm", found.warm_s, unit="s",
                   at_most=ABOVE_S, computing=True),
        Finding.of("a process gone after its deadline", found.gone_s, unit="s",
                   at_most=GONE_WITHIN_S, computing=True),
        Finding.of("a result of 200 MB", found.result_mb, unit="MB", at_most=MOST_MB),
    ]  # fmt: skip
    publish("workers", "s; MB", options, findings, vars(found))


if __name__ == "__main__":
    main()
