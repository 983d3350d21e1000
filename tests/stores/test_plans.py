"""How a conversation is shown is kept with it."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from harness_actors.errors import StoreError
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Reference, Span, ToolPolicy
from harness_actors.records import Entry, RunChanged
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import expire
from tests.stores.entries import a_round, added, an_end, changed

FIRST = CompactionPlan(
    version=1,
    base=0,
    upto=4,
    spans=(
        Span(start=0, end=2, action="drop", references=(Reference(at=1, what="draw({})"),)),
        Span(start=2, end=4, action="externalize", shown_chars=1500),
    ),
    policies={"draw": ToolPolicy(durability="non_replayable", keep=("card",))},
)
SECOND = replace(FIRST, version=2, base=1)


def adopted(version: int, plan: CompactionPlan, run_id: str = "run-1") -> RunChanged:
    change = changed(version, run_id)
    return replace(change, delta=replace(change.delta, plan=plan))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    talk = "talk"
    entries: list[Entry] = [
        added("run-1", conversation_id=talk),
        a_round(1, "run-1"),
        adopted(2, FIRST),
        changed(3, "run-1", end=an_end("run-1")),
        added("run-2", conversation_id=talk),
        adopted(1, SECOND, "run-2"),
        added("other"),
    ]
    journal.commit(term, entries)
    journal.close()
    return path


def test_a_conversation_has_the_newest_of_its_plans(store: Path) -> None:
    journal = JournalReader(store)
    assert journal.load_plan("talk") == SECOND
    for run_id in ("run-1", "run-2"):
        run = journal.load_run(run_id)
        assert run is not None
        assert run.state.plan == SECOND
    other = journal.load_run("other")
    assert other is not None
    assert other.state.plan is None


def test_each_change_has_the_plan_that_it_adopted(store: Path) -> None:
    journal = JournalReader(store)
    assert [c.delta.plan for c in journal.load_changes("run-1")] == [None, FIRST, None]
    assert [c.delta.plan for c in journal.load_changes("run-2")] == [SECOND]


def test_a_plan_goes_with_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    journal.commit(
        journal.begin_term(),
        [added("run-1"), adopted(1, FIRST), changed(2, "run-1", end=an_end("run-1"))],
    )
    journal.commit(journal.begin_term(), [added("newer")])
    journal.close()
    assert expire(path, ended_before=10**6).runs == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM plans").fetchone() == (0,)


@pytest.mark.parametrize(
    "plain",
    [
        b"{}",
        b"[]",
        b'"plan"',
        orjson.dumps({**FIRST.as_plain(), "upto": 1}),
        orjson.dumps({**FIRST.as_plain(), "version": -1}),
        orjson.dumps({**FIRST.as_plain(), "spans": [{"start": 0, "end": 2, "action": "burn"}]}),
        orjson.dumps({**FIRST.as_plain(), "policies": {"draw": {"durability": "x", "keep": []}}}),
    ],
)
def test_what_is_no_plan_is_damage(store: Path, plain: bytes) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE plans SET plan = ?", (plain.decode(),))
    with pytest.raises(StoreError, match="damaged"):
        JournalReader(store).load_run("run-1")


def test_what_the_harness_said_is_told_from_what_the_user_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    said = [Message.user("mine"), Message.told("the harness's")]
    journal.commit(journal.begin_term(), [added(), changed(1, messages=said)])
    journal.close()
    found = JournalReader(path).load_conversation("talk-of-run-1")
    assert [message.by_harness for message in found] == [False, True]
    assert [message.is_error for message in found] == [False, False]
