"""What does a change of the code cost? Two trees of it do the same work at once.

    git worktree add ../before HEAD~1
    python benchmarks/beside.py ../before [--pairs 5] [--rounds 40] [--rounds-per-turn 1]

On a machine that has slow hours and fast seconds, two measurements one after the other differ by
more than most changes do. Here the tree that this file is in and another one hold the
conversations of `bench_round_cost` at the same time, so that whatever the machine does meets both,
and the ratio of their CPU is printed, per pair and in the middle. It says nothing of pace: each
has half of the machine. `RAY_USE_UVLOOP=1` in the environment, or another virtual environment by
`--python`, is for both or for the other one.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.contest import ROOT
from benchmarks.findings import ratios
from benchmarks.measure import Spread, print_table

ONE = """
import json, sys
from pathlib import Path
import benchmarks, harness_actors
for package in (benchmarks, harness_actors):
    if not Path(package.__file__).is_relative_to(Path.cwd()):
        sys.exit(f"it has no {package.__name__}: {package.__file__} would be measured")
from benchmarks.contest import Contender, compete
from benchmarks.notes import Work
kind, sizes = json.loads(sys.argv[1])
found = compete({"": Contender(kind=kind, title="", work=Work(**sizes))}, 1)
print(found[""][0].gross_ms)
"""
"""Run in a tree, whose modules it takes; of an older one, too, as far as these names are there."""


def cpu_ms(tree: Path, python: str, work: str) -> float:
    """CPU per round of one tree, its idle included.

    Raises:
        RuntimeError: It did not do the work; says what it said.
    """
    ran = subprocess.run(
        [python, "-c", ONE, work],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{tree}: {ran.stderr}")
    return float(ran.stdout)


def compare(options: argparse.Namespace) -> list[tuple[float, float]]:
    """Milliseconds of this tree and of the other, pair by pair."""
    sizes = {"conversations": options.conversations, "rounds": options.rounds}
    if options.rounds_per_turn is not None:
        sizes["rounds_per_turn"] = options.rounds_per_turn
    work = json.dumps((options.runtime, sizes))
    trees = [(ROOT, sys.executable), (options.other.resolve(), options.python)]
    pairs = []
    with ThreadPoolExecutor(len(trees)) as pool:
        for number in range(1, options.pairs + 1):
            both = [pool.submit(cpu_ms, tree, python, work) for tree, python in trees]
            these, those = (one.result() for one in both)
            pairs.append((these, those))
            told = f"{these:.2f} ms beside {those:.2f} ms of CPU per round"
            print(f"  {number}/{options.pairs} {told}", file=sys.stderr, flush=True)
    return pairs


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    pairs = compare(options)
    these, those = zip(*pairs, strict=True)
    found = [ratio for ratio in ratios(these, those) if ratio is not None]
    print_table(
        ("tree", "ms CPU per round"),
        [(str(ROOT), str(Spread.of(these))), (str(options.other), str(Spread.of(those)))],
    )
    figure = Spread.of(found)
    print(json.dumps({"ratio": figure.rounded(), "n": len(found), "ratios": found}))


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="What does a change of the code cost? Two trees of it do the same work at once."
    )
    parser.add_argument("other", type=Path, metavar="TREE", help="another checkout")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--rounds-per-turn", type=int, default=None)
    parser.add_argument("--runtime", choices=("ray", "local"), default="ray")
    parser.add_argument("--python", default=sys.executable, help="of the other tree")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
