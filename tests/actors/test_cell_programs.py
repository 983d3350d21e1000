"""The code and the keys that a cell has: kept once, and sent to the hosts that need them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.actors.coordinator.cell_programs import KEPT_BLOBS, Programs
from harness_actors.actors.coordinator.seat import KEPT_PROGRAMS
from harness_actors.actors.mailbox import Code
from harness_actors.coordination.protocol import CUSTOM, Slot
from harness_actors.records import CodeStored
from harness_actors.state import AGENT_TURN, REPAIR
from harness_actors.stores import SqliteJournal
from tests.actors.test_executor_host import a_spec
from tests.actors.test_roster import Cell

TURN = Slot(AGENT_TURN)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        yield journal


@pytest.fixture
async def cell() -> AsyncIterator[Cell]:
    cell = Cell()
    yield cell
    cell.seats.close()
    for peer in cell.peers:
        peer.kill()


def nothing_runs(_: str) -> bool:
    return False


def test_code_is_stored_once_and_again_where_the_journal_may_have_dropped_it(
    journal: SqliteJournal,
) -> None:
    programs = Programs(journal, nothing_runs)
    one, two = CodeStored(code="a", blob=b"1"), CodeStored(code="b", blob=b"2")
    assert programs.add({"a": b"1"}) == [one]
    assert programs.add({"a": b"1", "b": b"2"}) == [two]
    programs.forget()
    assert programs.add({"a": b"1", "b": b"2"}) == [one, two]


def test_of_much_code_the_newest_is_held(journal: SqliteJournal) -> None:
    programs = Programs(journal, nothing_runs)
    every = {str(number): b"x" for number in range(KEPT_BLOBS + 1)}
    programs.add(every)
    assert [stored.code for stored in programs.add(every)] == ["0"]


def test_a_key_is_what_was_handed_over_or_else_that_of_the_environment(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(journal, nothing_runs)
    assert programs.has_keys([])
    assert not programs.has_keys(["A_TEST_KEY"])
    monkeypatch.setenv("A_TEST_KEY", "of the environment")
    assert programs.has_keys(["A_TEST_KEY"])
    assert not programs.has_keys(["A_TEST_KEY", "ANOTHER_TEST_KEY"])
    programs.add_secrets({"A_TEST_KEY": "first", "ANOTHER_TEST_KEY": "x"})
    programs.add_secrets({"A_TEST_KEY": "second"})
    assert programs.has_keys(["A_TEST_KEY", "ANOTHER_TEST_KEY"])
    assert programs.key("A_TEST_KEY") == "second"


async def test_a_host_that_runs_users_code_is_sent_it_with_the_keys_that_it_needs(
    journal: SqliteJournal, cell: Cell
) -> None:
    # As of a run of an earlier command.
    journal.commit(journal.begin_term(), [CodeStored(code="code", blob=b"program")])
    programs = Programs(journal, nothing_runs)
    programs.add_secrets({"needed": "1", "TOOLS_API_KEY": "2", "of another model": "3"})
    spec = replace(a_spec(), keys=("needed", "missing"))
    for slot in (Slot(REPAIR), TURN, Slot(CUSTOM, "code", pool="mine"), TURN):
        programs.teach(cell.seats, slot, spec)

    await cell.until(2, cell.marks)
    for peer in cell.peers:
        await peer.arrived.wait()
        assert peer.got == [Code("code", b"program", {"needed": "1", "TOOLS_API_KEY": "2"}, 1)]
    assert cell.seats.incarnation(Slot(REPAIR)) == 0


async def test_a_host_is_sent_no_more_than_it_may_keep(journal: SqliteJournal, cell: Cell) -> None:
    names = [f"code{number}" for number in range(KEPT_PROGRAMS + 1)]
    journal.commit(journal.begin_term(), [CodeStored(code=name, blob=b"x") for name in names])
    programs = Programs(journal, {"code0"}.__contains__)
    for name in names:
        programs.teach(cell.seats, TURN, replace(a_spec(), code=name))

    assert cell.seats.knows(TURN, "code0", {}), "a run that is being served has it"
    assert not cell.seats.knows(TURN, "code1", {})
    assert cell.seats.knows(TURN, names[-1], {})


async def test_code_that_is_nowhere_is_not_sent(journal: SqliteJournal, cell: Cell) -> None:
    Programs(journal, nothing_runs).teach(cell.seats, TURN, a_spec())
    assert not cell.seats.knows(TURN, "code", {})
