"""What does a long result take in the process that keeps it, whichever way it comes?

Unit: MB of memory at the peak, above before, of the process that serves the run, from the call
until the result is on the disk, and seconds for the same: of a function that hands over a file, of
one that returns a text (besides the text itself, which it has made), of a command, and of a worker
process.

More than 50 MB of 200 would mean that a few such results at once fill the memory of all runs of
their process; then what is in memory at once has to be made less.

    python benchmarks/bench_long_results.py [--smoke] [--megabytes 200] [--repeats 5]
"""

import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from benchmarks.measure import peak_mb
from harness_actors.actors.host.shipped_executors import supervised_processes
from harness_actors.actors.host.tool_workers import tool_workers
from harness_actors.config import ArtifactsConfig
from harness_actors.messages import ToolCall
from harness_actors.ports import LargeResult, Tool, ToolContext
from harness_actors.stores.artifacts import ArtifactFolder
from harness_actors.tools import tool
from harness_actors.tools.command import run_command
from harness_actors.turn.artifacts import keep_large
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from harness_actors.turn.outcomes import ToolArtifactReference, ToolExecutionResult

MB = 1_000_000
MOST_MB = 50.0

Figures = dict[str, list[float]]


@tool(effect="read_only")
def handed_over(megabytes: int) -> LargeResult:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever takes it closes it
    for _ in range(megabytes):
        file.write(b"x" * MB)
    return LargeResult("x", file)


@tool(effect="read_only", worker=True)
def worked_out(megabytes: int) -> str:
    return "x" * (megabytes * MB)


@contextmanager
def a_context() -> Iterator[ToolContext]:
    """Of a call as an agent turn makes it; nothing is kept yet, and no process is there."""
    processes = supervised_processes(own_process=False)
    try:
        with tempfile.TemporaryDirectory(prefix="long-results-") as folder:
            store = Path(folder) / "runs.db"
            store.touch()
            yield ToolContext(
                run_id="run",
                call_id="call",
                workspace=Path(folder),
                in_thread=asyncio.to_thread,
                environment={"HARNESS_RUN_ID": "run"},
                processes=processes,
                workers=tool_workers(processes),
                artifacts=ArtifactFolder(store).of("talk", ArtifactsConfig(cap_bytes=1 << 40)),
            )
    finally:
        processes.close()


async def keep(context: ToolContext, function: Tool, arguments: object, least: int) -> None:
    """Make a call and keep what comes of it."""
    call = ToolCall("call", function.spec.name, json.dumps(arguments))
    outcome = await run_call(PlannedCall(call=call, tool=function), context, Due(None))
    outcome = await keep_large(outcome, function.spec.name, context)
    _check(outcome, least)


async def keep_text(context: ToolContext, text: str) -> None:
    """Keep a text that is there."""
    _check(await keep_large(ToolExecutionResult(text=text), "text", context), len(text))


def _check(outcome: object, least: int) -> None:
    if not isinstance(outcome, ToolArtifactReference) or outcome.size_chars < least:
        raise SystemExit(f"not kept whole: {str(outcome)[:300]}")


def ways(context: ToolContext, megabytes: int) -> dict[str, Callable[[], Awaitable[None]]]:
    """Each way in which a result of so many MB comes to be kept."""
    size, given = megabytes * MB, {"megabytes": megabytes}
    text = "x" * size
    prints = {"command": f"head -c {size} /dev/zero | tr '\\0' x", "timeout_s": 120}
    return {
        "a function's file": lambda: keep(context, handed_over, given, size),
        "a function's text": lambda: keep_text(context, text),
        "a command": lambda: keep(context, run_command, prints, size),
        "a worker process": lambda: keep(context, worked_out, given, size),
    }


async def measure(megabytes: int, repeats: int) -> tuple[Figures, Figures]:
    """MB and seconds of each way, in a process that has gone each before."""
    mb: Figures = defaultdict(list)
    seconds: Figures = defaultdict(list)
    for _ in range(repeats):
        with a_context() as context:
            # The first use of a thread and of a process is no part of it.
            for begin in ways(context, 1).values():
                await begin()
            for name, begin in ways(context, megabytes).items():
                before, began = peak_mb(anew=True), time.perf_counter()
                await begin()
                mb[name].append(peak_mb() - before)
                seconds[name].append(time.perf_counter() - began)
    return mb, seconds


def main() -> None:
    options = read_options(__doc__, sizes={"megabytes": 200}, smoke={"megabytes": 2})
    mb, seconds = asyncio.run(measure(options.megabytes, options.repeats))
    size = f"{options.megabytes} MB"
    findings = [
        *(Finding.of(f"{size}, {name}", mb[name], unit="MB", at_most=MOST_MB) for name in mb),
        *(Finding.of(f"{size}, {name}: until it is kept", seconds[name], unit="s") for name in mb),
    ]
    publish("long_results", "MB; s", options, findings, {"mb": mb, "seconds": seconds})


if __name__ == "__main__":
    main()
