"""Does a cell grow with the runs that it has served?

Unit: proportional set size (PSS) of each actor's process in MB, after every tenth of the
runs, and the growth per run over the second half, when caches and pools are full. Each run
is one model call by a scripted model on Ray; at most 200 are in flight.

More than 1 KB per served run in the coordinator would mean that something keeps what is
over, and a cell that serves a million runs would need a gigabyte for nothing.

    python benchmarks/bench_served_memory.py [--smoke] [--runs 20000]
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.findings import Finding, plain
from benchmarks.measure import machine, print_report, pss_kb, versions
from harness_actors.actors import Runtime, open_runtime
from harness_actors.actors.kinds import KINDS
from harness_actors.actors.processes import is_alive
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel

IN_FLIGHT = 200
READINGS = 10
UP_WITHIN_S = 30.0
WITH_THE_CELL = {name for name, kind in KINDS.items() if kind.starts_with_cell}


def actors_of(store: Path) -> dict[str, int]:
    """The pids of a cell's actors, by role; empty for one on the local runtime.

    Runs may be over before all are up that start with their cell, so these are waited for.
    """
    until = time.monotonic() + UP_WITHIN_S
    journal = JournalReader(store)
    try:
        while True:
            found = {mark.role: mark.pid for mark in journal.load_processes() if is_alive(mark)}
            if not found or found.keys() >= WITH_THE_CELL or time.monotonic() > until:
                return found
            time.sleep(0.05)
    finally:
        journal.close()


async def serve(runtime: Runtime, program: Program, runs: int) -> None:
    """Submit runs as others end, until so many have ended."""
    config = HarnessConfig(completion="answer")
    cursor = await runtime.position()
    submitted = ended = 0
    while ended < runs:
        free = min(IN_FLIGHT - (submitted - ended), runs - submitted)
        if free:
            task = (Message.user("Say something."),)
            specs = [program.spec(task, config) for _ in range(free)]
            await runtime.submit(specs, code={program.code: program.blob}, secrets={})
            submitted += free
        happened = await runtime.wait_for_news(cursor)
        cursor = happened.cursor
        ended += len(happened.results)


async def measure(folder: Path, runs: int) -> tuple[list[dict[str, float]], float]:
    """Memory by role after each tenth of the runs, and runs per second."""
    store = folder / "runs.db"
    program = Program.of(ChatAgent(model=ScriptedModel(lambda _: Reply.text("something"))))
    runtime = await open_runtime("ray", store=store, address="local", command=uuid4().hex)
    readings: list[dict[str, float]] = []
    try:
        began = time.perf_counter()
        for _ in range(READINGS):
            await serve(runtime, program, runs // READINGS)
            actors = actors_of(store).items()
            readings.append({role: pss_kb(pid) / 1024 for role, pid in actors})
        return readings, runs / (time.perf_counter() - began)
    finally:
        await runtime.close()


def growth_kb_per_run(readings: list[dict[str, float]], role: str, runs: int) -> float:
    """Over the second half of the runs."""
    half = readings[READINGS // 2 - 1][role]
    return 1024 * (readings[-1][role] - half) / (runs / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="200 runs, to see that it works")
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    runs: int = 200 if options.smoke else options.runs
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        readings, runs_per_s = asyncio.run(measure(Path(folder), runs))
    growth = {role: round(growth_kb_per_run(readings, role, runs), 3) for role in readings[-1]}
    report: dict[str, Any] = {
        "benchmark": "served_memory",
        "unit": "MB PSS; KB per run",
        "machine": facts,
        "versions": versions("ray"),
        "n": 1,
        "runs": runs,
        "runs_per_s": round(runs_per_s, 1),
        "mb_after_each_tenth": [{k: round(v, 1) for k, v in each.items()} for each in readings],
        "growth_kb_per_run": growth,
        "findings": plain(
            [
                Finding.of(
                    f"growth of the coordinator per run, {runs} runs",
                    [growth["coordinator"]],
                    unit="KB",
                    at_most=1.0,
                )
            ]
        ),
    }
    rows = [
        (role, *(f"{readings[at][role]:.1f}" for at in (0, READINGS // 2 - 1, -1)), f"{kb:.2f}")
        for role, kb in growth.items()
    ]
    heads = ("actor", "MB after 10 %", "50 %", "100 %", "KB per run, second half")
    print_report(report, heads, rows)


if __name__ == "__main__":
    main()
