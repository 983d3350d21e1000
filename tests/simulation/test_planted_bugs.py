"""The simulator finds what was made wrong on purpose, so it would find it in earnest, too."""

import os

import pytest

from tests.simulation.batch import run_many
from tests.simulation.planted import BUGS, PlantedBug

SEEDS = range(1, 5001)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    with bug.planted():
        outcome = run_many(SEEDS, bug.mode, jobs=os.cpu_count() or 1)
    assert outcome.broken is not None, f"not found in {outcome.schedules} schedules: {bug.name}"


def test_no_bug_stays_behind() -> None:
    for bug in BUGS:
        before = [owner.__dict__[name] for owner, name, _ in bug.patches()]
        with bug.planted():
            assert [owner.__dict__[name] for owner, name, _ in bug.patches()] != before
        assert [owner.__dict__[name] for owner, name, _ in bug.patches()] == before
