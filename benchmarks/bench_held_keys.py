"""What does a call of a run in a tree pay for the resource keys that it holds?

Unit: milliseconds of wall time of a call that need not wait, above the same call without keys,
where it writes and where it reads; milliseconds from the moment in which a call lets go of a key
until the next one has it, in its process and in another one (as two hosts, which share no more
than their files).

More than 0.1 ms for a call that need not wait would be more than all that is done for it besides;
more than 60 ms until the next one begins, that who waits looks too seldom.

    python benchmarks/bench_held_keys.py [--smoke] [--calls 2000] [--waits 20] [--repeats 5]
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from harness_actors.messages import ToolCall
from harness_actors.ports import Tool
from harness_actors.stores.key_files import KeyFiles
from harness_actors.stores.key_locks import LONGEST_PAUSE_S, KeyLocks
from harness_actors.tools import tool
from harness_actors.turn.bounds import Due
from harness_actors.turn.keys import HeldKeys
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolExecutionResult, ToolOutcome

AT_MOST_MS = 0.1
NEXT_WITHIN_MS = 60.0
HELD_S = 0.2
"""So long that who waits looks as seldom as it ever does."""
DONE = ToolExecutionResult(text="done")


@tool(resource_keys=["file:{path}"])
async def write(path: str) -> str:
    return path


@tool(effect="read_only", resource_keys=["file:{path}"])
async def read(path: str) -> str:
    return path


async def done() -> ToolOutcome:
    return DONE


def locks_in(folder: str) -> KeyLocks:
    """As each host has them."""
    return KeyLocks(KeyFiles(Path(folder) / "runs.db"))


async def paid_ms(folder: str, function: Tool, calls: int) -> float:
    """Milliseconds of a call with keys above one without, in the median."""
    held = HeldKeys(locks_in(folder), "tree", asyncio.to_thread)
    call = ToolCall("call", function.spec.name, '{"path": "notes/today.md"}')
    plan, due = PlannedCall(call=call, tool=function), Due(60.0)
    with_keys: list[float] = []
    without: list[float] = []
    for _ in range(calls):
        begun = time.perf_counter()
        await held.make(plan, due, done)
        between = time.perf_counter()
        await done()
        with_keys.append(between - begun)
        without.append(time.perf_counter() - between)
    return (median(with_keys) - median(without)) * 1000


async def next_after_ms(first: KeyLocks, second: KeyLocks, waits: int) -> float:
    """Milliseconds from when a call lets go of a key until the next one has it, at most."""
    longest = 0.0

    async def follow() -> float:
        async with second.held("tree", ["key"], reads=False):
            return time.perf_counter()

    for place in range(waits):
        async with first.held("tree", ["key"], reads=False):
            following = asyncio.ensure_future(follow())
            # At another moment between two looks each time.
            await asyncio.sleep(HELD_S + LONGEST_PAUSE_S * place / waits)
            freed = time.perf_counter()
        longest = max(longest, await following - freed)
    return longest * 1000


async def measure(calls: int, waits: int, repeats: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"writes": [], "reads": [], "here": [], "there": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            found["writes"].append(await paid_ms(folder, write, calls))
            found["reads"].append(await paid_ms(folder, read, calls))
            here, there = locks_in(folder), locks_in(folder)
            found["here"].append(await next_after_ms(here, here, waits))
            found["there"].append(await next_after_ms(here, there, waits))
    return found


def main() -> None:
    options = read_options(
        __doc__, sizes={"calls": 2000, "waits": 20}, smoke={"calls": 50, "waits": 1}
    )
    found = asyncio.run(measure(options.calls, options.waits, options.repeats))
    findings = [
        Finding.of("a call that writes and need not wait", found["writes"], unit="ms",
                   at_most=AT_MOST_MS, computing=True),
        Finding.of("a call that reads and need not wait", found["reads"], unit="ms",
                   at_most=AT_MOST_MS, computing=True),
        Finding.of("the next one in the process begins", found["here"], unit="ms",
                   at_most=NEXT_WITHIN_MS),
        Finding.of("the next one in another process begins", found["there"], unit="ms",
                   at_most=NEXT_WITHIN_MS),
    ]  # fmt: skip
    publish("held_keys", "ms", options, findings, found)


if __name__ == "__main__":
    main()
