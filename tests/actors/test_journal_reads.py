"""Who follows runs by a cursor is told everything, however far behind it is."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness_actors.actors.coordinator.journal_reads import Readings
from harness_actors.actors.coordinator.news import Bulletin
from harness_actors.events import CustomEvent, Event, RunCompleted
from harness_actors.results import HarnessResult
from harness_actors.stores import SqliteJournal
from tests.stores.entries import added, an_end, changed

CHANGES = 2_500


async def test_all_that_a_new_incarnation_has_on_disk_is_told_page_by_page(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "runs.db")
    events = [CustomEvent(name=str(number)) for number in range(CHANGES)]
    rounds = [changed(version, events=[event]) for version, event in enumerate(events, start=1)]
    over = RunCompleted(status="done", reason="completed", message="")
    end = changed(CHANGES + 1, events=[over], end=an_end())
    journal.commit(journal.begin_term(), [added(), *rounds, end])
    bulletin, cursor = Bulletin(journal.position()), 0
    told: list[Event] = []
    results: dict[str, HarnessResult] = {}

    with ThreadPoolExecutor(1) as thread:
        readings = Readings(journal, bulletin, thread)
        while cursor < bulletin.position:
            happened = await readings.after(cursor, messages=False)
            told += [event.event for event in happened.events]
            results.update(happened.results)
            cursor = happened.cursor
    journal.close()

    assert told == [*events, over]
    assert results == {"run-1": an_end()}
