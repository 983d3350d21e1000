"""Does a fallible model end with the task truly done in other frameworks, or with an honest no?

    python -m benchmarks.peers.bench_peer_completion [--only NAMES] [--faults NAMES] [--smoke]

The tasks, the model and the draws of `benchmarks/bench_completion.py`, for each framework twice:
in its *defaults*, as its documentation writes an agent, and with what its documentation offers
for a *check* of the user's own, which tells what files are not yet as they should be. Each runs in
an environment and a process of its own, with tools of the same names, arguments and behaviour. The
timeout of a request is ours; how often it is sent again is each one's own business. A run that
ends without an exception holds its task to be done. What is on the disk in the end is the truth.

What would change our mind: a framework that does better than ours in either row.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Run as a file, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import bench_completion
from benchmarks.bench_completion import (
    MIXED,
    RATE,
    TIMEOUT_S,
    Outcome,
    calls_a_task,
    falsely,
    run_contract,
    run_defaults,
    share,
    truly,
)
from benchmarks.command import publish
from benchmarks.findings import Finding
from benchmarks.measure import machine
from benchmarks.peers.contenders import CHECKED, DEFAULTS, FINISHERS, Contender, chosen
from benchmarks.peers.environments import InstallError, python_of, versions_of
from benchmarks.peers.finishing import finishing
from harness_actors.testing import ToolNames
from harness_actors.testing.fallible import MISBEHAVIOURS, Misbehaviour

OURS = "harness_actors"
FAULTS = (MIXED, "claims", "wanders")
HEADS = ("fault", "", "", "truly complete", "false success", "calls a task", "said")

Found = dict[tuple[str, str, str], list[Outcome]]
"""By fault, row and name."""


Measured = AsyncIterator[tuple[str, str, list[Outcome], str]]
"""Fault, row, what came out, and what was said most often of tasks that were given up."""


async def measure_ours(options: Any) -> Measured:
    """All tasks under all faults, in both rows."""
    for row, run in ((DEFAULTS, run_defaults), (CHECKED, run_contract)):
        for fault in options.faults:
            rates = rates_of(fault, smoke=options.smoke)
            yield fault, row, await bench_completion.measure(run, rates, options), ""


async def measure_peer(contender: Contender, options: Any) -> Measured:
    """The same of a framework.

    Raises:
        InstallError: Its environment could not be made.
        RuntimeError: Its process ended before its time.
    """
    prefix = contender.prefix
    tools = ToolNames(
        write=f"{prefix}write_file",
        read=f"{prefix}read_file",
        edit=f"{prefix}edit_file",
        run=f"{prefix}run_command",
    )
    module = f"benchmarks.peers.{contender.entry.partition(':')[0]}"
    python = python_of(contender.environment)
    async with finishing(python, module, prefix=prefix) as at_work:
        for row in (DEFAULTS, CHECKED):
            for fault in options.faults:
                at_work.how = row
                at_work.said.clear()
                rates = rates_of(fault, smoke=options.smoke)
                outcomes = await bench_completion.measure(at_work.run, rates, options, tools)
                common = at_work.said.most_common(2)
                said = ", ".join(f"{times} × {what[:60]}" for what, times in common)
                yield fault, row, outcomes, said


def rates_of(fault: str, *, smoke: bool) -> Mapping[Misbehaviour, float]:
    drawn = MISBEHAVIOURS if fault == MIXED else [one for one in MISBEHAVIOURS if one == fault]
    return dict.fromkeys(drawn, RATE if not smoke else 0.2)


def findings_of(found: Found) -> list[Finding]:
    """Every figure, and whether ours is first in both columns of both rows."""
    findings: list[Finding] = []
    for (fault, row, name), outcomes in found.items():
        whose = f"{fault}, {row}, {name}"
        findings += [
            Finding.of(f"{whose}: truly complete", [share(outcomes, truly)], unit="%"),
            Finding.of("… false success", [share(outcomes, falsely)], unit="%"),
            Finding.of("… calls a task", [calls_a_task(outcomes)], unit=""),
        ]
    for fault, row in dict.fromkeys((fault, row) for fault, row, _ in found):
        ours = found.get((fault, row, OURS))
        others = [found[key] for key in found if key[:2] == (fault, row) and key[2] != OURS]
        if ours is None or not others:
            continue
        ahead = share(ours, truly) - max(share(other, truly) for other in others)
        beyond = share(ours, falsely) - min(share(other, falsely) for other in others)
        findings += [
            Finding.of(
                f"{fault}, {row}: truly complete, beyond the best of the others",
                [ahead],
                unit="%",
                at_least=0,
            ),
            Finding.of(
                "… false success, beyond the least of the others", [beyond], unit="%", at_most=0
            ),
        ]
    return findings


async def compare(options: argparse.Namespace) -> None:
    """Let everybody do all tasks, one after the other, and print what came out."""
    options.machine = machine()
    found: Found = {}
    rows: list[tuple[str, ...]] = []
    failed: dict[str, str] = {}

    async def add(name: str, measured: Measured) -> None:
        async for fault, row, outcomes, said in measured:
            found[fault, row, name] = outcomes
            shown = f"{share(outcomes, truly):.0f} %", f"{share(outcomes, falsely):.0f} %"
            rows.append((fault, row, name, *shown, f"{calls_a_task(outcomes):.1f}", said))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)

    await add(OURS, measure_ours(options))
    for name, contender in chosen(options.only, FINISHERS[DEFAULTS]).items():
        try:
            await add(name, measure_peer(contender, options))
        except (InstallError, RuntimeError) as error:
            failed[name] = f"{type(error).__name__}: {error}"
    places = {fault: at for at, fault in enumerate(options.faults)}
    rows.sort(key=lambda row: (places[row[0]], row[1] == CHECKED))
    came = figures(found, failed)
    publish("peer completion", "%", options, findings_of(found), came, (HEADS, rows))
    for name, why in failed.items():
        print(f"{name}: {why}", file=sys.stderr)


def figures(found: Found, failed: Mapping[str, str]) -> dict[str, Any]:
    """What was measured of whom, as JSON."""
    return {
        "contenders": {
            name: versions_of(contender.environment, contender.distributions)
            for name, contender in FINISHERS[DEFAULTS].items()
        },
        "failed": failed,
        "outcomes": [
            {"fault": fault, "row": row, "name": name, "task": o.task, "claimed": o.claimed}
            | {"missing": o.missing, "met": o.met, "calls": o.calls}
            for (fault, row, name), outcomes in found.items()
            for o in outcomes
            if o.missing or not o.claimed
        ],
    }


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(FINISHERS[DEFAULTS])}")
    parser.add_argument("--faults", metavar="NAMES", help=f"of {MIXED}, {', '.join(MISBEHAVIOURS)}")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--files", type=int, default=6, help="steps of a task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout-s", type=float, default=TIMEOUT_S, help="of an attempt")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args(given)
    try:
        chosen(options.only, FINISHERS[DEFAULTS])
    except ValueError as error:
        parser.error(str(error))
    options.faults = options.faults.split(",") if options.faults else list(FAULTS)
    if unknown := set(options.faults) - {MIXED, *MISBEHAVIOURS}:
        parser.error(f"no fault {sorted(unknown)}; there are {MIXED}, {', '.join(MISBEHAVIOURS)}")
    options.repeats = 1
    if options.smoke:
        options.tasks, options.faults = 3, ["claims"]
    return options


if __name__ == "__main__":
    asyncio.run(compare(parse_arguments()))
