"""What a journal costs as runs grow long and many: bytes, memory, and time to look at them."""

import gc
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.rounds import COMMAND, Rounds, added, ended, texts
from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.messages import Message
from harness_actors.records import Entry, RunChanged, SnapshotTaken, StoredChange
from harness_actors.stores import JournalReader, SqliteJournal, commit
from harness_actors.testing import Reply, ScriptedModel

CHANGES_PER_SNAPSHOT = 64


@pytest.fixture(scope="module")
def text() -> str:
    return texts()


def weigh(path: Path, made: Rounds, rounds: int) -> int:
    """Bytes of a journal of one run with these rounds, with snapshots as they are taken."""
    journal = SqliteJournal(path)
    term = journal.begin_term()
    entries: list[Entry] = [added("run-1")]
    for _ in range(rounds):
        for change in made.make():
            entries.append(change)
            assert isinstance(change, RunChanged)
            if change.version % CHANGES_PER_SNAPSHOT == 0:
                values = {"harness.usage": {"model_calls": change.version}}
                entries.append(SnapshotTaken(run_id="run-1", version=change.version, values=values))
        if len(entries) >= 500:
            journal.commit(term, entries)
            entries = []
    journal.commit(term, entries)
    journal.close()
    return path.stat().st_size


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "not fenced"])
def test_a_long_run_has_a_journal_of_linear_size_and_near_its_messages(
    tmp_path: Path, text: str, fenced: bool
) -> None:
    short, long = (Rounds("run-1", fenced=fenced, text=text) for _ in range(2))

    per_round = {
        rounds: weigh(tmp_path / f"{rounds}.db", made, rounds) / rounds
        for rounds, made in ((200, short), (2000, long))
    }

    assert per_round[2000] <= 1.1 * per_round[200]
    assert 600 < long.message_bytes / 2000 < 680, "the figure is of rounds of this size"
    assert per_round[2000] * 2000 <= 1.5 * long.message_bytes
    assert per_round[200] * 200 <= 1.5 * short.message_bytes


@tool
async def run_command(path: str) -> str:
    """Runs something that must not run twice."""
    return f"ran {path}"


@tool(effect="read_only")
async def read_file(path: str) -> str:
    """Reads something."""
    return f"read {path}"


def shape(changes: Iterable[StoredChange | RunChanged]) -> list[object]:
    """What stands in changes, without the values."""
    return [
        (
            sorted((write.key, write.change) for write in change.delta.writes),
            [message.role for message in change.delta.messages],
            [type(event).__name__ for event in change.delta.events],
            sorted(
                name
                for write in change.delta.writes
                if write.key == "harness.usage"
                for name in write.value
            ),
        )
        for change in changes
    ]


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "not fenced"])
async def test_the_rounds_that_are_weighed_are_those_that_a_turn_commits(
    path: Path, text: str, fenced: bool
) -> None:
    name = "run_command" if fenced else "read_file"

    def script(messages: Sequence[Message]) -> Reply:
        rounds = sum(message.role == "assistant" for message in messages)
        if rounds < 3:
            return Reply.call(name, {"path": f"file {rounds}"}, said="Next.")
        return Reply.call("work_complete", {"summary": "done"})

    agent = ChatAgent(model=ScriptedModel(script), tools=[run_command, read_file])
    async with AgentHarness(agent, runtime="local", store=path) as harness:
        result = await harness.run("go")
        assert result.status == "done"
    committed = shape(JournalReader(path).load_changes(result.run_id))
    made = Rounds("run-1", fenced=fenced, text=text).make()

    expected = shape(change for change in made if isinstance(change, RunChanged))
    found = [at for at in range(len(committed)) if committed[at : at + len(made)] == expected]
    # What a turn remembers is written where it changes: that it progressed, after the first call.
    assert len(found) == (2 if fenced else 3)


RUNS = 20_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteJournal, int]]:
    """A journal that served many runs and has one left, and by how many objects that grew."""
    journal = SqliteJournal(tmp_path_factory.mktemp("served") / "runs.db")
    term = journal.begin_term()

    def serve(first: int, last: int) -> int:
        for start in range(first, last, 1000):
            names = [f"run-{number}" for number in range(start, start + 1000)]
            journal.commit(term, [added(name) for name in names])
            journal.commit(term, [ended(name, 1) for name in names])
        gc.collect()
        return len(gc.get_objects()) + sys.getallocatedblocks()

    before = serve(0, 2000)
    after = serve(2000, RUNS)
    journal.commit(term, [added("the last")])
    yield journal, after - before
    journal.close()


def test_a_journal_that_served_twenty_thousand_runs_holds_no_more_than_before(
    served: tuple[SqliteJournal, int],
) -> None:
    journal, grown = served

    assert grown < 2000, "one object for each run would be 18,000"
    assert list(journal._committer._rows_of_runs) == ["the last"]


def test_twenty_thousand_ended_runs_are_no_weight_on_the_one_that_is_not(
    served: tuple[SqliteJournal, int],
) -> None:
    journal, _ = served

    started = time.process_time()
    unfinished = journal.load_unfinished(COMMAND)
    took_s = time.process_time() - started

    assert [run.spec.run_id for run in unfinished] == ["the last"]
    assert took_s < 0.2


def test_twenty_thousand_headings_are_read_at_once(served: tuple[SqliteJournal, int]) -> None:
    journal, _ = served

    started = time.process_time()
    headings = journal.headings()
    took_s = time.process_time() - started

    assert len(headings) == RUNS + 1
    # 0.4 s where it was written; the bound leaves room for slow machines.
    assert took_s < 4.0


def test_a_journal_whose_runs_never_end_remembers_so_many_of_them(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "ROWS_REMEMBERED", 100)
    term = journal.begin_term()
    for start in range(0, 500, 50):
        journal.commit(term, [added(f"run-{n}") for n in range(start, start + 50)])

    assert len(journal._committer._rows_of_runs) <= 100
    # And finds the others.
    journal.commit(term, [ended("run-0", 1)])
    assert journal.load_result("run-0") is not None


def test_a_journal_waits_for_others_as_before_when_its_log_was_moved(path: Path) -> None:
    journal = SqliteJournal(path, busy_s=3.0)
    term = journal.begin_term()
    journal._log_bytes = 0
    journal.commit(term, [added("run-1")])
    assert journal._log_bytes > 0, "it was moved"
    assert journal._writer.execute("PRAGMA busy_timeout").fetchone() == (3000,)
    journal.close()
