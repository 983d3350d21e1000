"""Summaries of parts of a conversation: kept until a plan has them, and never taken twice."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.plan import (
    CompactionPlan,
    Decision,
    OpenItem,
    Reference,
    Span,
    Summary,
    ToolOutcome,
)
from harness_actors.records import Entry, RunChanged, SummaryStored
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import expire
from tests.stores.entries import a_round, added, an_end, changed

FIRST = Summary(
    facts=("The port is 4711.",),
    decisions=(Decision(what="We take SQLite.", why="it is there", at=3),),
    open_items=(OpenItem(what="write the tests", priority="high"),),
    outcomes=(ToolOutcome(tool="run", came="failure", fields={"path": "a"}, error="no", at=2),),
    references=(Reference(at=2, what="draw({})"),),
    current_task="Count the files.",
    current_plan=("look", "count"),
)
SECOND = Summary(facts=("It rains.",))
PLAN = CompactionPlan(
    version=1,
    base=0,
    upto=2,
    spans=(Span(start=0, end=2, action="summarize"),),
    summary=FIRST,
    summary_chars=900,
    made_of=("one",),
)
TALK = "talk"


def stored(key: str, summary: Summary, run_id: str = "run-1") -> SummaryStored:
    return SummaryStored(run_id=run_id, key=key, summary=summary)


def adopted(version: int, plan: CompactionPlan, run_id: str = "run-1") -> RunChanged:
    change = changed(version, run_id)
    return replace(change, delta=replace(change.delta, plan=plan))


def a_store(path: Path, *more: Entry) -> Path:
    journal = SqliteJournal(path)
    begun: list[Entry] = [added("run-1", conversation_id=TALK), a_round(1, "run-1")]
    journal.commit(journal.begin_term(), [*begun, *more])
    journal.close()
    return path


def known(path: Path, run_id: str = "run-1") -> dict[str, Summary]:
    run = JournalReader(path).load_run(run_id)
    assert run is not None
    return dict(run.summaries)


def test_a_summary_comes_back_as_it_was(tmp_path: Path) -> None:
    path = a_store(tmp_path / "runs.db", stored("one", FIRST), stored("two", SECOND))
    assert known(path) == {"one": FIRST, "two": SECOND}


def test_the_first_of_a_key_counts(tmp_path: Path) -> None:
    path = a_store(tmp_path / "runs.db", stored("one", FIRST), stored("one", SECOND))
    assert known(path) == {"one": FIRST}


def test_what_a_plan_has_is_not_given_again(tmp_path: Path) -> None:
    others = stored("one", FIRST), stored("another", SECOND)
    path = a_store(tmp_path / "runs.db", *others, adopted(2, PLAN))
    assert known(path) == {"another": SECOND}
    plan = JournalReader(path).load_plan(TALK)
    assert plan == PLAN


def test_a_plan_that_summarizes_nothing_more_takes_none_away(tmp_path: Path) -> None:
    drops = replace(
        PLAN,
        version=2,
        base=1,
        upto=4,
        spans=(*PLAN.spans, Span(start=2, end=4, action="drop")),
        made_of=(),
    )
    made = changed(3, "run-1"), stored("two", SECOND)
    path = a_store(tmp_path / "runs.db", adopted(2, PLAN), *made, adopted(4, drops))
    assert known(path) == {"two": SECOND}


def test_the_next_run_of_a_conversation_has_those_of_the_run_before(tmp_path: Path) -> None:
    path = a_store(
        tmp_path / "runs.db",
        stored("one", FIRST),
        changed(2, "run-1", end=an_end("run-1")),
        added("run-2", conversation_id=TALK),
        added("other"),
    )
    assert known(path, "run-2") == {"one": FIRST}
    assert known(path, "other") == {}
    assert known(path) == {}, "it is over"


def test_summaries_go_with_their_runs(tmp_path: Path) -> None:
    path = a_store(
        tmp_path / "runs.db", stored("one", FIRST), changed(2, "run-1", end=an_end("run-1"))
    )
    a_newer = SqliteJournal(path)
    a_newer.commit(a_newer.begin_term(), [added("newer")])
    a_newer.close()
    assert expire(path, ended_before=10**6).runs == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM summaries").fetchone() == (0,)


@pytest.mark.parametrize("plain", ["[]", '"x"', '{"facts": "x"}', '{"decisions": [{}]}'])
def test_what_is_no_summary_is_damage(tmp_path: Path, plain: str) -> None:
    path = a_store(tmp_path / "runs.db", stored("one", FIRST))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE summaries SET summary = ?", (plain,))
    with pytest.raises(StoreError):
        known(path)
