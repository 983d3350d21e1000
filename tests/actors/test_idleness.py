"""When a cell has had nothing to do for too long, without one that waits for it."""

import asyncio
from pathlib import Path

import pytest

from harness_actors.actors.cell_key import cell_name, store_of
from harness_actors.actors.cell_lifetime import IDLE_S, IDLE_VARIABLE, idle_s
from harness_actors.actors.coordinator.idleness import ABANDONED_S, Idleness
from harness_actors.errors import BadInputError


class Cell:
    """What an idleness looks at, set by hand."""

    def __init__(self) -> None:
        self.runs = 0
        self.committed = 0
        self.now = 100.0

    def new_idleness(self, seconds: float | None) -> Idleness:
        return Idleness(lambda: self.runs, lambda: self.committed, seconds, lambda: self.now)

    def idleness(self, seconds: float | None) -> Idleness:
        """Of a cell whose command has called it."""
        idleness = self.new_idleness(seconds)
        with idleness.interrupted():
            return idleness


def test_it_counts_from_when_the_last_run_was_over() -> None:
    cell = Cell()
    idleness = cell.idleness(10)
    cell.runs = 1
    cell.now += 60
    assert idleness.left_s == 10
    cell.runs = 0
    cell.now += 4
    assert (idleness.lasts_s, idleness.left_s) == (4, 6)
    cell.now += 20
    assert idleness.left_s == 0


def test_one_that_nobody_has_called_yet_waits_for_the_command_that_started_it() -> None:
    cell = Cell()
    idleness = cell.new_idleness(0.5)
    cell.now += ABANDONED_S - 1
    assert idleness.left_s == 1
    with idleness.interrupted():
        pass
    assert idleness.left_s == 0.5
    assert cell.new_idleness(10 * ABANDONED_S).left_s == 10 * ABANDONED_S


def test_a_run_that_came_and_went_between_two_looks_is_seen_by_what_it_left() -> None:
    cell = Cell()
    idleness = cell.idleness(10)
    cell.now += 9
    cell.committed += 3
    assert idleness.left_s == 10
    cell.now += 4
    assert idleness.left_s == 6, "it was seen once"


def test_a_call_keeps_it_from_being_over_until_it_is_answered() -> None:
    cell = Cell()
    idleness = cell.idleness(10)
    with idleness.interrupted():
        cell.now += 60
        assert idleness.left_s == 10
    cell.now += 3
    assert idleness.left_s == 7


def test_it_may_never_be_over_and_one_that_was_abandoned_does_not_stay_for_ever() -> None:
    cell = Cell()
    cell.now += 1e9
    assert cell.idleness(None).left_s is None
    assert cell.idleness(0).left_s == ABANDONED_S


async def test_waiting_ends_when_it_is_over() -> None:
    cell = Cell()
    idleness = cell.idleness(10)
    waiting = asyncio.create_task(idleness.until_over())
    await asyncio.sleep(0)
    assert not waiting.done()
    cell.now += 11
    await asyncio.wait_for(waiting, 20)


def test_how_long_is_said_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(IDLE_VARIABLE, raising=False)
    assert idle_s() == IDLE_S
    monkeypatch.setenv(IDLE_VARIABLE, "0")
    assert idle_s() == 0
    for wrong in ("soon", "-1", "inf", "nan"):
        monkeypatch.setenv(IDLE_VARIABLE, wrong)
        with pytest.raises(BadInputError, match=IDLE_VARIABLE):
            idle_s()


def test_the_name_of_a_cell_tells_its_journal(tmp_path: Path) -> None:
    store = tmp_path / "a: b.db"
    assert store_of(cell_name(store)) == store.resolve()
    assert cell_name(store) == cell_name(store)
    assert cell_name(store) != cell_name(store.with_name("other.db"))
    assert store_of("somebody's actor") is None
