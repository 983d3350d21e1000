"""What lists of runs say, of several journals at once and whoever works on them."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.cli.ctl.facts import facts_of_runs
from harness_actors.records import Entry
from harness_actors.results import HarnessResult, Reason
from harness_actors.stores import SqliteJournal
from tests.stores.entries import added, changed
from tests.stores.test_expiry import held_by_another_process


def stored(store: Path, entries: Sequence[Entry]) -> Path:
    with closing(SqliteJournal(store)) as journal:
        journal.begin_term()
        journal.commit(1, entries)
    return store


def over(run_id: str, at: float) -> list[Entry]:
    reason = Reason(kind="completed")
    end = HarnessResult(run_id=run_id, status="done", reason=reason)
    return [added(run_id, at=at), changed(1, run_id, end=end)]


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    """Runs that were begun in the order of their letters, and not journal by journal."""
    return [
        stored(tmp_path / "runs.db", [*over("a", 1.0), added("d", at=4.0, command="")]),
        stored(tmp_path / "runs-2.db", [added("b", at=2.0), *over("c", 3.0)]),
    ]


def listed(stores: Sequence[Path], status: str | None = None, limit: int = 0) -> list[str]:
    found, broken = facts_of_runs(stores, status=status, limit=limit)
    assert not broken
    return [facts.heading.run_id for facts in found]


def test_the_newest_of_all_journals_are_last_and_stay_where_there_is_a_limit(
    stores: list[Path],
) -> None:
    for several in (stores, stores[::-1]):
        assert listed(several) == ["a", "b", "c", "d"]
        assert listed(several, limit=2) == ["c", "d"]
        assert listed(several, "ended", limit=1) == ["c"], "of those that were asked for"


@pytest.mark.parametrize(
    ("status", "ids"),
    [
        ("running", []),
        ("interrupted", ["b"]),
        ("parked", ["d"]),
        ("waiting", []),
        ("ended", ["a", "c"]),
        ("done", ["a", "c"]),
        ("failed", []),
    ],
)
def test_each_run_stands_in_one_way_and_those_that_are_over_also_as_they_ended(
    stores: list[Path], status: str, ids: list[str]
) -> None:
    assert listed(stores, status) == ids


def test_a_run_is_in_progress_where_somebody_works_on_its_journal(stores: list[Path]) -> None:
    with held_by_another_process(stores[1]):
        assert listed(stores, "running") == ["b"]
        assert listed(stores, "interrupted") == []
        assert listed(stores, "parked") == ["d"]


def test_of_a_journal_that_cannot_be_read_it_is_said_and_the_others_are_listed(
    stores: list[Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"this is no journal" * 100)

    found, broken = facts_of_runs([bad, *stores])

    assert [facts.heading.run_id for facts in found] == ["a", "b", "c", "d"]
    assert [str(bad) in str(error) for error in broken] == [True]
