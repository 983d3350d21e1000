"""The journal's one writer: order, groups, and what a failing commit leads to."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_actors.actors.coordinator.journal_writer import JournalWriter
from harness_actors.errors import StaleTermError, StoreError
from harness_actors.records import CodeStored, Entry
from harness_actors.stores import SqliteJournal
from tests.stores.entries import added, changed


class Journal(SqliteJournal):
    """The shipped one; its commits wait at a gate and can be made to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.groups: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fault: Exception | None = None

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        self.gate.wait()
        self.groups.append(len(entries))
        if self.fault is not None:
            raise self.fault
        return super().commit(term, entries)


class Desk:
    """A writer with its journal, and what it told."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.thread = ThreadPoolExecutor(1)
        self.failures: list[StoreError] = []
        self.done: list[int] = []
        term = journal.begin_term()
        self.writer = JournalWriter(journal, term, self.thread, self.failures.append)

    def write(self, number: int, entries: int = 1) -> None:
        blobs = [CodeStored(code=f"{number}.{i}", blob=b"x") for i in range(entries)]
        self.writer.write(blobs, lambda _: self.done.append(number))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(Journal(tmp_path / "runs.db"))
    yield desk
    desk.journal.gate.set()
    await desk.writer.settle()
    desk.thread.shutdown()
    desk.journal.close()


async def test_what_follows_happens_when_the_entries_are_on_disk(
    desk: Desk, tmp_path: Path
) -> None:
    desk.journal.gate.clear()
    desk.write(1)
    await asyncio.sleep(0)
    assert desk.done == []
    desk.journal.gate.set()
    await desk.writer.settle()
    assert desk.done == [1]
    reader = SqliteJournal(tmp_path / "runs.db")
    assert reader.load_code("1.0") == b"x"
    reader.close()


async def test_steps_that_come_while_a_transaction_is_in_flight_share_the_next(desk: Desk) -> None:
    desk.journal.gate.clear()
    desk.write(0)
    await asyncio.sleep(0)
    for number in range(1, 40):
        desk.write(number)
    desk.journal.gate.set()
    await desk.writer.settle()
    assert desk.journal.groups == [1, 39]
    assert desk.writer.commits == 2
    assert desk.done == list(range(40))


async def test_each_step_gets_the_positions_of_its_own_entries(desk: Desk) -> None:
    told: list[list[int]] = []
    desk.write(0)
    steps: list[list[Entry]] = [
        [],
        [changed(1), changed(2), changed(3)],
        [changed(4)],
        [changed(5)],
    ]
    desk.writer.write([added()], lambda _: None)
    for entries in steps:
        desk.writer.write(entries, lambda positions: told.append(list(positions)))
    await desk.writer.settle()
    events = [one.position for one in desk.journal.load_changes("run-1")]
    assert told == [[], events[:3], events[3:4], events[4:]]


async def test_a_step_without_entries_keeps_its_place(desk: Desk) -> None:
    desk.write(1)
    desk.write(2, entries=0)
    desk.write(3)
    assert desk.done == []
    await desk.writer.settle()
    assert desk.done == [1, 2, 3]


async def test_a_step_without_entries_needs_no_disk(desk: Desk) -> None:
    desk.write(1, entries=0)
    assert desk.done == [1]
    assert desk.writer.commits == 0


async def test_settling_does_not_wait_for_what_is_written_later(desk: Desk) -> None:
    desk.write(1)
    more = 100

    def write_another(_: Sequence[int]) -> None:
        nonlocal more
        more -= 1
        if more:
            entry = CodeStored(code=str(more), blob=b"x")
            desk.writer.write([entry], write_another)

    desk.writer.write([], write_another)
    await desk.writer.settle()
    assert desk.done == [1]
    assert more > 90, "under load there is always something more to write"


async def test_settling_with_nothing_to_write_returns_at_once(desk: Desk) -> None:
    await desk.writer.settle()
    assert desk.writer.commits == 0


@pytest.mark.parametrize(
    "fault",
    [
        StoreError("runs.db", "no space is left on the disk"),
        StaleTermError("runs.db", "term 1 is over"),
        RuntimeError("something that nobody thought of"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_commit_that_fails_is_told_once_and_nothing_follows(
    desk: Desk, fault: Exception
) -> None:
    desk.journal.gate.clear()
    desk.journal.fault = fault
    desk.write(1)
    await asyncio.sleep(0)
    desk.write(2)
    desk.journal.gate.set()
    await desk.writer.settle()
    desk.write(3)
    desk.write(4, entries=0)
    await desk.writer.settle()
    assert desk.done == []
    assert len(desk.failures) == 1
    assert str(fault).split(": ")[-1] in str(desk.failures[0])
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nobody waits for it any more"


async def test_what_was_committed_before_the_failure_has_followed(desk: Desk) -> None:
    desk.write(1)
    await desk.writer.settle()
    desk.journal.fault = StoreError("runs.db", "gone")
    desk.write(2)
    await desk.writer.settle()
    assert desk.done == [1]
    assert desk.failures == [desk.journal.fault]


async def test_a_fault_in_what_follows_stops_the_writer(desk: Desk) -> None:
    def then(_: Sequence[int]) -> None:
        raise KeyError("a fault of ours")

    desk.writer.write([CodeStored(code="c", blob=b"x")], then)
    await desk.writer.settle()
    (failure,) = desk.failures
    assert "KeyError" in str(failure)


async def test_a_full_disk_is_told_with_file_and_cause(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    journal = Journal(path)
    # A page limit is how SQLite itself plays a full disk.
    pages = journal._writer.execute("PRAGMA page_count").fetchone()[0]
    journal._writer.execute(f"PRAGMA max_page_count = {pages + 8}")
    desk = Desk(journal)
    for number in range(100):
        blob = CodeStored(code=str(number), blob=b"x" * 10_000)
        desk.writer.write([blob], lambda _, number=number: desk.done.append(number))  # type: ignore[misc]
        await desk.writer.settle()
        if desk.failures:
            break
    (failure,) = desk.failures
    assert str(path) in str(failure)
    assert "full" in str(failure)
    desk.thread.shutdown()
    journal.close()
    stored = sqlite3.connect(path).execute("SELECT count(*) FROM code").fetchone()[0]
    assert stored == len(desk.done), "what followed is on the disk, and nothing else"
