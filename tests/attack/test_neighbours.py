"""All hostile modes at once beside good runs, in one process; `make attack` has each on Ray."""

import pytest

from tests.attack.battle import Seen
from tests.attack.hostile_modes import MODES
from tests.attack.neighbours import Bounds, Suffered, over_bounds, try_modes

# A machine on which other tests run delays everything.
LOADED = Bounds(median_ms=200.0, worst_ms=3000.0, memory_mb=300.0)


def test_hostile_runs_neither_end_nor_hold_up_good_ones() -> None:
    quick = [name for name, mode in MODES.items() if mode.quick]

    outcome = try_modes(quick, bounds=LOADED, seconds=2.0, local=True)

    assert outcome.tries == len(quick)
    assert outcome.through == ()


def test_what_good_runs_suffer_is_measured_against_what_they_do_alone() -> None:
    alone = Seen([0.1, 0.11, 0.12], {"actor": 100.0, "driver": 50.0}, {}, "")
    beside = Seen([0.11, 0.12, 0.51], {"actor": 420.0, "driver": 80.0, "scan": 90.0}, {}, "")

    suffered = Suffered.of(alone, beside)

    assert suffered.median_ms == pytest.approx(10)
    assert (suffered.worst_ms, suffered.worst_alone_ms) == pytest.approx((390, 10))
    assert (suffered.role, suffered.memory_mb) == ("actor", 320.0)
    assert over_bounds(Bounds(), suffered) == [
        "the worst good round took 390 ms longer",
        "actor took 320 MB more",
    ]
