"""A few tries of each attack; `make attack` has the many."""

import pytest

from tests.attack.attacks import Attack, all_attacks

ATTACKS = all_attacks()


@pytest.mark.parametrize(
    "attack", [pytest.param(one, id=name) for name, one in ATTACKS.items() if one.quick]
)
def test_nothing_gets_through(attack: Attack) -> None:
    outcome = attack.run(attack.quick)

    assert outcome.tries
    assert outcome.through == ()
