"""Which idle cells of a node stay, without a node."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.cell_lifetime import WARM_CELLS, WARM_VARIABLE, warm_cells
from harness_actors.actors.coordinator.warm_cells import by_age
from harness_actors.errors import BadInputError


def a_cell(number: int, idle_since: float, use: str = "") -> CellFacts:
    return CellFacts(
        store=f"/runs/{number}.db",
        pid=number,
        host="here",
        node="node",
        idle_since=idle_since,
        in_progress=("run",) if use == "run" else (),
        in_use=use == "command",
        problem="its disk is full" if use == "broken" else "",
    )


def test_the_longest_idle_is_asked_first_and_each_with_the_number_of_newer_ones() -> None:
    cells = [a_cell(1, 30.0), a_cell(2, 10.0), a_cell(3, 20.0)]

    assert [(cell.pid, newer) for cell, newer in by_age(cells)] == [(2, 2), (3, 1), (1, 0)]


@pytest.mark.parametrize("use", ["run", "command", "broken"])
def test_one_that_is_of_use_is_never_asked_and_is_newer_than_all_that_are_not(use: str) -> None:
    cells = [a_cell(1, 30.0), a_cell(2, 10.0, use), a_cell(3, 20.0), a_cell(4, 5.0, use)]

    assert [(cell.pid, newer) for cell, newer in by_age(cells)] == [(3, 2), (1, 1)]


@given(
    cells=st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from(["", "", "run", "command"])),
        max_size=8,
    ),
    stay=st.integers(min_value=0, max_value=3),
    order=st.randoms(use_true_random=False),
)
def test_whoever_asks_the_same_ones_stay_and_no_more_than_are_to(
    cells: list[tuple[float, str]], stay: int, order: Random
) -> None:
    known = [a_cell(number, *facts) for number, facts in enumerate(cells)]
    shuffled = order.sample(known, len(known))

    asked = by_age(known)

    assert by_age(shuffled) == asked
    staying = [cell for cell, newer in asked if newer <= stay]
    in_use = any(use for _, use in cells)
    assert len(staying) == min(len(asked), stay if in_use else stay + 1)
    assert staying == [cell for cell, _ in asked][len(asked) - len(staying) :], "the newest"


def test_how_many_stay_is_said_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WARM_VARIABLE, raising=False)
    assert warm_cells() == WARM_CELLS
    monkeypatch.setenv(WARM_VARIABLE, "0")
    assert warm_cells() == 0
    for wrong in ("many", "-1", "0.5", "inf"):
        monkeypatch.setenv(WARM_VARIABLE, wrong)
        with pytest.raises(BadInputError, match=WARM_VARIABLE):
            warm_cells()
