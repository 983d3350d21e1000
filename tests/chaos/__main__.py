"""Real chaos: ``python -m tests.chaos``, or ``make chaos``.

For each kind of disturbance a batch is run by `harness batch` on a Ray of its own, or on one that
was started by hand (``joined_…``), while processes are killed or stopped at random moments. Then
two batches with a run whose tool crashes its process, and two that run out of disk. The exit
status is 1 when an invariant is broken; what the batch left is then kept, and its place told.

Recovery slower than its bar is shown in red and is no failure here: it depends on the machine.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.chaos.battle import Battle, Size, Verdict
from tests.chaos.kinds import KINDS
from tests.chaos.outages import OUTAGES, run_outage
from tests.chaos.report import as_plain, exit_status, print_table

CRASHES = {"crash_segfault": "segfault", "crash_memory": "memory"}
ALL = (*KINDS, *CRASHES, *OUTAGES)


def run_one(name: str, options: argparse.Namespace, console: Console) -> Verdict:
    """One batch, to its verdict."""
    # Not where this program lies: the paths of Ray's sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{name}-"))
    at_once = min(options.runs, options.at_once)
    size = Size(runs=options.runs, at_once=at_once, patient=at_once // 2)
    if name in OUTAGES:
        verdict = run_outage(name, folder, size=size, seed=options.seed)
        if verdict.is_clean and not options.keep:
            shutil.rmtree(folder)
        return verdict
    battle = Battle(
        folder,
        [KINDS[name]] * options.times if name in KINDS else [],
        size=size,
        seed=options.seed,
        poison=CRASHES.get(name, ""),
        keep=options.keep,
        patience=options.patience,
        tell=lambda text: console.print(f"  {text}", style="dim", highlight=False),
    )
    return asyncio.run(battle.fight())


def main(given: Sequence[str] | None = None) -> int:
    options = parse_arguments(given)
    # In a log there is room for the whole table.
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 120)
    verdicts: dict[str, Verdict] = {}
    for name in options.kinds:
        console.print(f"[bold]{name}[/bold], {options.runs} runs, seed {options.seed}")
        verdicts[name] = verdict = run_one(name, options, console)
        word = "clean" if verdict.is_clean else f"{len(verdict.findings.broken)} findings"
        console.print(f"  {word} after {verdict.wall_s:.0f} s")
    print_table(console, verdicts)
    if options.json:
        print(json.dumps({"seed": options.seed, "runs": options.runs, **as_plain(verdicts)}))
    return exit_status(list(verdicts.values()))


def parse_arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Kill, stop and starve a real batch, and see that nothing is lost or doubled.",
    )
    parser.add_argument(
        "--kinds",
        type=lambda text: text.split(","),
        default=list(ALL),
        help=f"comma separated; default all: {', '.join(ALL)}",
    )
    parser.add_argument("--times", type=int, default=20, help="disturbances of each kind")
    parser.add_argument("--runs", type=int, default=100, help="runs of each batch")
    parser.add_argument("--at-once", type=int, default=50, help="of them at once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep what sound batches left, too")
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="TIMES",
        help="how many times as long everything may take, on a machine with other work",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line at the end")
    options = parser.parse_args(given)
    if unknown := set(options.kinds) - set(ALL):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
