"""What a budget counts of what was spent before it, while runs go on and end."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.actors.coordinator.earlier_costs import EarlierCosts
from harness_actors.records import Entry
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.state import USAGE, Write
from harness_actors.stores import SqliteJournal
from tests.coordination.world import World
from tests.stores.entries import added, changed


def begun(run_id: str, cost_usd: float) -> list[Entry]:
    """A run that has cost this much."""
    spent = Write(USAGE.name, "increment", {"model_calls": 1, "cost_usd": cost_usd})
    return [added(run_id), changed(1, run_id, writes=[spent])]


def over(run_id: str, cost_usd: float) -> Entry:
    usage = Usage(model_calls=1, cost_usd=cost_usd)
    reason = Reason(kind="completed")
    end = HarnessResult(run_id=run_id, status="done", reason=reason, usage=usage)
    return changed(2, run_id, end=end)


class Ledger:
    """The costs of a cell.

    Attributes:
        during: What happens once, when this call of the journal has been read.
    """

    def __init__(self, journal: SqliteJournal) -> None:
        coordinator = World().coordinator
        self.budget = coordinator.budget
        self.costs = EarlierCosts(coordinator, journal, self._read, self._settle)
        self.during: dict[str, Callable[[], None]] = {}
        self.reads: list[str] = []

    async def _read(self, call: Callable[..., object], *arguments: object) -> object:
        found = call(*arguments)
        self.reads.append(call.__name__)
        self.during.pop(call.__name__, lambda: None)()
        return found

    async def _settle(self) -> None:
        self.reads.append("settled")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        journal.begin_term()
        journal.commit(1, [*begun("earlier", 2.0), over("earlier", 2.0)])
        yield journal


@pytest.mark.parametrize("when", ["removed_cost_usd", "headings"])
async def test_what_a_run_has_cost_that_ends_while_costs_are_added_up_counts_once(
    journal: SqliteJournal, when: str
) -> None:
    ledger = Ledger(journal)
    journal.commit(1, begun("now", 3.0))
    ledger.budget.take_up("now", 3.0)

    def end() -> None:
        journal.commit(1, [over("now", 3.0)])
        ledger.budget.end("now")

    ledger.during[when] = end

    assert await ledger.costs.ended_usd() == 2.0
    ledger.budget.allow(9.0, spent_usd=2.0)
    assert ledger.budget.spent_usd == 5.0


async def test_costs_are_added_up_once_from_what_is_on_disk(journal: SqliteJournal) -> None:
    ledger = Ledger(journal)
    journal.commit(1, begun("parked", 4.0))

    assert await ledger.costs.ended_usd() == 2.0
    assert ledger.reads == ["settled", "removed_cost_usd", "headings"]
    assert await ledger.costs.ended_usd() == 2.0
    assert len(ledger.reads) == 3, "each command of a warm cell asks for it"
    ledger.budget.take_up("parked", 4.0)
    ledger.budget.allow(9.0, spent_usd=2.0)
    assert ledger.budget.spent_usd == 6.0, "what it cost before it is taken up is spent, and once"
