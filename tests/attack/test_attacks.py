"""A few tries of each attack; `make attack` has the many."""

from pathlib import Path

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


def test_the_page_on_security_names_each_class() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()

    assert not [name for name in ATTACKS if f"| `{name.split(':')[0]}" not in page]
