"""Hostile runs beside good ones on Ray, each mode by itself."""

from functools import partial

from tests.attack.attacks import Attack, Outcome
from tests.attack.hostile_modes import MODES
from tests.attack.neighbours import try_modes


def _try(name: str, tries: int) -> Outcome:
    """Try a mode so often; the first time that something gets through is told."""
    outcomes = [Outcome(0)]
    while outcomes[-1].tries < tries and not outcomes[-1].through:
        one = try_modes([name])
        outcomes.append(Outcome(outcomes[-1].tries + 1, one.through, one.figures))
    return outcomes[-1]


# The tests try all of them at once, in one process: tests/attack/test_neighbours.py.
ATTACKS = tuple(
    Attack(f"neighbours:{name}", f"{mode.what}, beside six good runs", partial(_try, name), 1, 0)
    for name, mode in MODES.items()
)
