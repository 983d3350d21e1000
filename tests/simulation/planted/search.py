"""Looks for a planted bug: from the seed where it showed before, on to others."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.simulation.batch import Outcome, run_many
from tests.simulation.planted.bug import PlantedBug

RECORD = Path(__file__).with_name("first_seeds.json")
SCHEDULES = 5000
"""More than a run of the tests goes through: the rarest shows in one schedule of two thousand."""
RARE = 1
"""A bug that shows by this seed is looked for from the first one: all others have theirs on record,
which spares the tests the schedules before it."""


def first_seeds(record: Path = RECORD) -> Mapping[str, int]:
    """The seeds at which bugs were found that show in few schedules, by the names of the bugs."""
    seeds: dict[str, int] = json.loads(record.read_text())
    return seeds


def search(
    bug: PlantedBug,
    first: int,
    *,
    schedules: int = SCHEDULES,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run schedules with a bug, until one breaks a promise that the bug is known to break.

    Args:
        bug: What is planted.
        first: The first seed, at least 1.
        schedules: How many seeds are tried.
        jobs: Processes to use, at least 1.
        progress: Told now and then how many are done.
    """
    seeds = range(first, first + schedules)
    with bug.planted():
        return run_many(seeds, bug.mode, jobs=jobs, breaks=bug.breaks, progress=progress)


def record_seeds(found: Mapping[str, int], record: Path = RECORD) -> None:
    """Keep the seeds of those that show later than `RARE`, and of no bug that is not among these.

    Args:
        found: The lowest seed at which each bug was found, by its name.
        record: The file.
    """
    rare = {name: seed for name, seed in sorted(found.items()) if seed > RARE}
    record.write_text(json.dumps(rare, indent=1) + "\n")
