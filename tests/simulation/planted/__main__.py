"""`python -m tests.simulation.planted`: how many schedules it takes to find each planted bug."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from tests.simulation.__main__ import fix_hashes
from tests.simulation.planted import BUGS
from tests.simulation.planted.bug import PlantedBug
from tests.simulation.planted.search import (
    RECORD,
    SCHEDULES,
    first_seeds,
    record_seeds,
    search,
)
from tests.simulation.progress import Progress


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__)
    parser.add_argument("--only", default="", help="bugs with this in their name")
    parser.add_argument(
        "--record", action="store_true", help=f"keep the seeds in {RECORD.name}, for the tests"
    )
    parser.add_argument(
        "--onward",
        action="store_true",
        help="look for each from the seed on record: those that are there still cost nothing",
    )
    given = parser.parse_args()
    bugs = [bug for bug in BUGS if given.only in bug.name]
    if not bugs:
        parser.error(f"no bug has {given.only!r} in its name")
    if given.record and given.only:
        parser.error("--record keeps the seeds of all bugs: leave out --only")
    fix_hashes("tests.simulation.planted")
    found = search_all(bugs, first_seeds() if given.onward else {})
    if given.record:
        record_seeds(found)
    return 0 if len(found) == len(bugs) else 1


def search_all(bugs: Sequence[PlantedBug], first: Mapping[str, int]) -> dict[str, int]:
    """Look for each, from the first seed or that of its name; where it was found, by its name."""
    found = {}
    for bug in bugs:
        progress = Progress(bug.name, SCHEDULES, sys.stderr)
        outcome = search(bug, first.get(bug.name, 1), jobs=os.cpu_count() or 1, progress=progress)
        progress.end()
        if outcome.broken is None:
            print(f"not found in {outcome.schedules} schedules: {bug.name}", flush=True)
            continue
        seed = found[bug.name] = outcome.broken.seed
        print(f"seed {seed:4}, {outcome.seconds:5.1f} s: {bug.name}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
