"""The simulator finds what was made wrong on purpose, so it would find it in earnest, too."""

from pathlib import Path

import pytest

from harness_actors.coordination.active import Effects
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.protocol import Envelope, Slot
from tests.simulation.batch import run_many
from tests.simulation.planted import BUGS, PlantedBug
from tests.simulation.planted.bug import Patches
from tests.simulation.planted.promises import PENDING
from tests.simulation.planted.search import RARE, first_seeds, record_seeds, search

FIRST_SEEDS = first_seeds()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    outcome = search(bug, FIRST_SEEDS.get(bug.name, 1))
    assert outcome.broken is not None, (
        f"not found in {outcome.schedules} schedules: {bug.name}; "
        f"what it broke besides: {outcome.other}"
    )


def _nothing_is_received() -> Patches:
    def patched(self: Coordinator, slot: Slot, envelope: Envelope) -> Effects:
        raise AttributeError("a patch that names something that is there no longer")

    return [(Coordinator, "received", patched)]


def test_a_bug_that_only_crashes_is_not_found() -> None:
    crash = PlantedBug("nothing is received", _nothing_is_received, frozenset({PENDING}))
    with crash.planted():
        outcome = run_many(range(1, 2), crash.mode, jobs=1, breaks=crash.breaks)
    assert outcome.broken is None
    assert outcome.other is not None
    assert outcome.schedules == 1


def test_no_bug_is_found_by_what_any_crash_would_break() -> None:
    for bug in BUGS:
        assert bug.breaks
        assert not bug.breaks & {"nothing fails unseen", "runs end as planned"}, bug.name


def test_no_bug_stays_behind() -> None:
    for bug in BUGS:
        before = [owner.__dict__[name] for owner, name, _ in bug.patches()]
        with bug.planted():
            assert [owner.__dict__[name] for owner, name, _ in bug.patches()] != before
        assert [owner.__dict__[name] for owner, name, _ in bug.patches()] == before


def test_the_search_goes_on_from_where_a_bug_was_found_before() -> None:
    bug = next(bug for bug in BUGS if bug.name == "receivers have no memory")
    lowest = search(bug, 1).broken
    assert lowest is not None
    later = search(bug, lowest.seed + 1).broken
    assert later is not None
    assert later.seed > lowest.seed
    assert later.breaks & bug.breaks
    assert search(bug, lowest.seed, schedules=1).broken == lowest


def test_seeds_are_kept_of_bugs_that_show_rarely_and_of_no_others(tmp_path: Path) -> None:
    record = tmp_path / "seeds.json"
    record_seeds({"rare": RARE + 1, "frequent": RARE}, record)
    assert first_seeds(record) == {"rare": RARE + 1}


def test_a_seed_is_on_record_for_bugs_of_the_list_alone() -> None:
    assert set(FIRST_SEEDS) <= {bug.name for bug in BUGS}
