"""`python -m tests.simulation`: many schedules, or one of them with its trace."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

HASH_SEED = "0"


def main() -> int:
    given = parsed(sys.argv[1:])
    fix_hashes("tests.simulation")
    return simulate(given)


def fix_hashes(module: str) -> None:
    """Begin this command of a module again, if its hashes are not the same each time."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        # A set of strings has another order in each process, unless this is set.
        environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED}
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command is asked to do."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument(
        "--seeds",
        type=int,
        default=1000,
        help="how many schedules of the protocol; on disk a 25th as many, moved a 50th",
    )
    parser.add_argument("--first", type=int, default=1, help="the first of their seeds")
    parser.add_argument("--mode", choices=("protocol", "disk", "moved", "both"), default="both")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument("--seed", type=int, help="run this one alone")
    parser.add_argument("--trace", action="store_true", help="print what happened in it")
    parser.add_argument("--without", default="", help="kinds of disturbances to leave out")
    return parser.parse_args(arguments)


def simulate(given: argparse.Namespace) -> int:
    """Run one schedule, or many until one breaks a promise.

    Returns:
        The exit code: 1 where a promise was broken.
    """
    without = frozenset(filter(None, given.without.split(",")))
    if given.seed is not None:
        return _one(given.seed, given.mode, without, trace=given.trace)
    return _many(given, without)


def _one(seed: int, mode: Any, without: frozenset[str], *, trace: bool) -> int:
    from tests.simulation.batch import quiet
    from tests.simulation.schedule import Schedule

    def tell(at: float, who: str, what: str) -> None:
        print(f"{at:10.4f}  {who:26} {what}")

    with quiet():
        schedule = Schedule(
            seed,
            mode="protocol" if mode == "both" else mode,
            without=without,
            trace=tell if trace else None,
        )
        report = schedule.run()
    print(f"seed {seed}: {report.steps} steps, {report.virtual_s:.1f} s of its own time")
    print(f"runs ended {', '.join(report.endings)}")
    for violation in report.violations:
        print(f"BROKEN at {violation.at:.4f}: {violation.invariant}: {violation.text}")
    return 1 if report.violations else 0


def _many(given: argparse.Namespace, without: frozenset[str]) -> int:
    from tests.simulation.batch import run_many
    from tests.simulation.progress import Progress
    from tests.simulation.schedule import Mode

    # One with the journal on disk takes some ten times as long.
    plan: list[tuple[Mode, int]] = [
        ("protocol", given.seeds),
        ("disk", max(200, given.seeds // 25) if given.mode == "both" else given.seeds),
        ("moved", max(100, given.seeds // 50) if given.mode == "both" else given.seeds),
    ]
    for mode, count in plan:
        if given.mode not in ("both", mode):
            continue
        seeds = range(given.first, given.first + count)
        progress = Progress(mode, count, sys.stderr)
        outcome = run_many(seeds, mode, jobs=given.jobs, without=without, progress=progress)
        progress.end()
        print(
            f"{mode}: {outcome.schedules} schedules, {outcome.steps} steps, "
            f"{outcome.seconds:.1f} s, {outcome.per_second:.0f} schedules per second"
            f"{'' if outcome.broken else ': every invariant holds'}",
            flush=True,
        )
        if outcome.broken is not None:
            broken = outcome.broken.violations[0]
            print(f"seed {outcome.broken.seed} breaks: {broken.invariant}: {broken.text}")
            left_out = f" --without {','.join(sorted(without))}" if without else ""
            print(
                f"to see how: {sys.executable} -m tests.simulation --mode {mode} "
                f"--seed {outcome.broken.seed} --trace{left_out}"
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
