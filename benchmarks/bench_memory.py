"""What does a run cost that waits for its model: in memory, processes and connections?

Unit: KB of proportional set size (PSS) of all processes, of ours and Ray's, per waiting run:
as 2,000 runs with conversations of 2 KB wait for answers at once, less what the same processes
had before any of them began. The server answers nothing until all have asked, and reports how
many requests were open at the same time.

What would change our mind: more than 80 KB per run, or one process more for 2,000 runs than for
one: then a machine's memory would bound the agents on it. Or fewer open requests than runs: then
something waits that is not the model.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.request import Request, urlopen

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contend import warm_up_of
from benchmarks.contest import DEADLINE_S, ROOT, SCRIPT
from benchmarks.findings import Finding
from benchmarks.harnessed import converse, opened, program_of, submit
from benchmarks.measure import Spread
from benchmarks.notes import Work
from benchmarks.windows import Window, measure_windows, window
from harness_actors.actors import RuntimeKind
from harness_actors.testing import LoopbackProcess

TASK_BYTES = 2048
LOOK_EVERY_S = 0.2
SETTLE_S = 1.0


async def wait_for_answers(kind: RuntimeKind, work: Work) -> None:
    """Let one run wait for its model, and then all; the process that is measured."""
    async with opened(kind, work) as (runtime,):
        await converse([runtime], warm_up_of(work), work.folder / "warm-up")
        cursor = await runtime.position()
        await asyncio.to_thread(tell, work, "hold")
        with window("none"):
            await asyncio.sleep(SETTLE_S)
        program, waiting = program_of(work), set[str]()
        for name, first, stop in (("one", 0, 1), ("all", 1, work.conversations)):
            numbers = range(first, stop)
            waiting |= await submit(runtime, program, work, work.log, numbers)
            await asyncio.to_thread(until_open, work, stop)
            with window(name):
                await asyncio.sleep(SETTLE_S)
        await asyncio.to_thread(tell, work, "release")
        while waiting:
            happened = await runtime.wait_for_news(cursor)
            cursor = happened.cursor
            waiting -= set(happened.results)


def tell(work: Work, what: str) -> None:
    """Let the server `hold` its answers, or `release` them."""
    with urlopen(Request(_address(work, what), method="POST")) as answer:
        answer.read()


def until_open(work: Work, requests: int) -> None:
    """Return when so many requests are open at once."""
    while True:
        with urlopen(_address(work, "stats")) as answer:
            if json.loads(answer.read())["open_now"] >= requests:
                return
        time.sleep(LOOK_EVERY_S)


def _address(work: Work, path: str) -> str:
    return f"{work.base_url.removesuffix('/v1')}/{path}"


def measure(kind: RuntimeKind, runs: int) -> tuple[Mapping[str, Window], int]:
    """The windows of one repetition, and the most requests that were open at once.

    Raises:
        RuntimeError: A request is missing, or one was made twice.
    """
    work = Work(conversations=runs, rounds=0, task_bytes=TASK_BYTES)
    with (
        # The server finds its script from the current folder.
        chdir(ROOT),
        tempfile.TemporaryDirectory(prefix="memory-") as folder,
        LoopbackProcess(SCRIPT) as server,
    ):
        given = replace(work, base_url=server.base_url, folder=Path(folder))
        command = [sys.executable, str(Path(__file__)), "--contender", kind, given.as_json()]
        windows = measure_windows(command, cwd=ROOT, deadline_s=DEADLINE_S)
        stats = server.stats()
    asked = runs + warm_up_of(work).model_calls
    if stats["requests"] != asked:
        raise RuntimeError(f"{stats['requests']} requests were made, and not {asked}")
    return windows, stats["peak"]


def kb_per_run(windows: Mapping[str, Window], runs: int) -> float:
    return (windows["all"].pss_kb - windows["none"].pss_kb) / runs


def findings(found: Sequence[tuple[Mapping[str, Window], int]], runs: int) -> list[Finding]:
    more = [windows["all"].processes - windows["one"].processes for windows, _ in found]
    return [
        Finding.of(
            f"memory per waiting run, {runs} runs of {TASK_BYTES // 1024} KB",
            [kb_per_run(windows, runs) for windows, _ in found],
            unit="KB",
            at_most=80.0,
        ),
        Finding.of(f"more processes at {runs} runs than at 1", more, unit="", at_most=0.0),
        Finding.of("model calls open at once", [p for _, p in found], unit="", at_least=runs),
    ]


def main() -> None:
    if sys.argv[1:2] == ["--contender"]:
        kind = cast(RuntimeKind, sys.argv[2])
        asyncio.run(wait_for_answers(kind, Work.from_json(sys.argv[3])))
        return
    options = read_options(__doc__, sizes={"runs": 2000}, smoke={"runs": 40})
    found = []
    for turn in range(options.repeats):
        found.append(measure(options.runtime, options.runs))
        told = f"{kb_per_run(found[-1][0], options.runs):.1f} KB per run"
        print(f"  {turn + 1}/{options.repeats} {told}", file=sys.stderr, flush=True)
    figures = {
        name: {
            "pss_mb": Spread.of(w[name].pss_kb / 1024 for w, _ in found).rounded(1),
            "processes": found[-1][0][name].processes,
        }
        for name in ("none", "one", "all")
    }
    publish(
        "memory",
        "KB of PSS per waiting run",
        options,
        findings(found, options.runs),
        {"waiting": figures, "peak": Spread.of(peak for _, peak in found).rounded(0)},
    )


if __name__ == "__main__":
    main()
