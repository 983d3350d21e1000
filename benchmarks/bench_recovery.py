"""How long is a run without its model when a process dies, or stops?

Unit: seconds from the signal until a run that it touched asks its model again; where the command
itself dies, from the start of the next one. A batch is struck at random moments, each time when
all its runs have got over the time before. Every run in flight counts; of a compaction, the first
one whose turn ended after the signal and that so had to wait for it.
Calls that were running, and are run again first, count too: up to 0.2 s each.

What would change our mind: at the 95th percentile more than 5 s for an executor or the
coordinator killed, 20 s for one stopped, 12 s for the driver or Ray. Processes take a second of
CPU each to start, so bars of kills are stretched where the machine is slower than theirs, and one
that has other work is slower still; print what it had (`load`).
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.findings import Finding, plain
from benchmarks.measure import machine, print_report, versions
from tests.chaos.battle import Battle, Size, Verdict
from tests.chaos.kinds import KINDS
from tests.chaos.recovery import Delays
from tests.chaos.report import is_slow, plain_delays

SMOKE = ("agent_turn", "coordinator")


def measure(kinds: list[str], *, runs: int, seed: int) -> Verdict:
    """One batch that meets disturbances one after the other.

    Raises:
        RuntimeError: It did not bear them; says what is broken, and where to look.
    """
    size = Size(runs=runs, at_once=runs, patient=runs, rounds=(2, 6))
    battle = Battle(
        Path(tempfile.mkdtemp(prefix="recovery-")),
        [KINDS[name] for name in kinds],
        size=size,
        seed=seed,
        hasty=0.0,
        tell=lambda text: print(f"  {text}", file=sys.stderr, flush=True),
    )
    verdict = asyncio.run(battle.fight())
    if not verdict.is_clean:
        raise RuntimeError(f"{verdict.findings.broken}; look at {verdict.folder}")
    return verdict


def report(options: argparse.Namespace, found: dict[str, Delays], load: dict[str, object]) -> None:
    """Print the figures of each kind."""
    line = {
        "benchmark": "recovery",
        "unit": "s until a run that was touched asks its model again",
        "machine": load,
        "versions": versions("ray"),
        # Disturbances of each kind.
        "n": options.times,
        "runs": options.runs,
        "recovery_s": {
            name: {**plain_delays(delays), "bar": KINDS[name].bar_s}
            for name, delays in found.items()
        },
        "findings": plain(findings(found)),
    }
    rows = [
        (name, str(len(delays.seconds)), _shown(delays), "slow" if is_slow(name, delays) else "")
        for name, delays in found.items()
    ]
    print_report(line, ("struck", "runs", "median / p95 / max s", ""), rows)


def findings(found: dict[str, Delays]) -> list[Finding]:
    return [
        Finding.of(
            f"recovery of {name}, 95th percentile",
            [delays.p95],
            unit="s",
            at_most=KINDS[name].bar_s if name in KINDS else None,
            # It is processes that start; of one that is stopped, mostly waiting until that is seen.
            computing=not name.startswith("stopped_"),
        )
        for name, delays in found.items()
    ]


def _shown(delays: Delays) -> str:
    figures = (delays.median, delays.p95, delays.most)
    return " / ".join("–" if figure is None else f"{figure:.2f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description="Recovery from deaths and stops.")
    parser.add_argument("--times", type=int, default=5, help="disturbances of each kind")
    parser.add_argument("--runs", type=int, default=30, help="runs in flight")
    whenever = [name for name, kind in KINDS.items() if kind.amid == "any" and not kind.after]
    parser.add_argument("--kinds", default=",".join(whenever), help="comma separated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if options.smoke:
        kinds, options.times, options.runs = list(SMOKE), 1, 6
    load = machine()
    found: dict[str, Delays] = {}
    for name in kinds:
        print(name, file=sys.stderr, flush=True)
        found |= measure([name] * options.times, runs=options.runs, seed=options.seed).delays
    report(options, found, load)


if __name__ == "__main__":
    main()
