"""A few tries of each attack; `make attack` has the many."""

from pathlib import Path

import pytest

from tests.attack.attacks import Attack, all_attacks
from tests.attack.classes.hidden_workspaces import WAYS, try_way

ATTACKS = all_attacks()

# Some start many commands, each of which takes a second on an idle machine.
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    "attack", [pytest.param(one, id=name) for name, one in ATTACKS.items() if one.quick]
)
def test_nothing_gets_through(attack: Attack) -> None:
    outcome = attack.run(attack.quick)

    assert outcome.tries
    assert outcome.through == ()


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_a_workspace_leads_there_where_nothing_is_covered(way: str) -> None:
    assert try_way(way, covered=False)


def test_the_page_on_security_names_each_class() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()

    assert not [name for name in ATTACKS if f"| `{name.split(':')[0]}" not in page]
