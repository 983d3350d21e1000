"""Real processes on one file: killed, reading, writing, making it at the same time."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from harness_actors.records import CodeStored
from harness_actors.stores import SqliteJournal
from tests.stores.entries import a_round, added

Start = Callable[[str, Path], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts functions of `tests.stores.children`; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(what: str, path: Path) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.stores.children", what, str(path)]
        root = Path(__file__).parents[2]
        child = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def output(child: "subprocess.Popen[str]") -> IO[str]:
    assert child.stdout is not None
    return child.stdout


def test_what_was_acknowledged_survives_sigkill_in_the_middle_of_committing(
    path: Path, start: Start
) -> None:
    acknowledged = 0
    for groups in (20, 1, 7):
        child = start("commit_for_ever", path)
        positions = [int(output(child).readline()) for _ in range(groups)]
        child.send_signal(signal.SIGKILL)
        positions += [int(line) for line in output(child).read().splitlines()]
        assert child.wait() == -signal.SIGKILL
        assert positions[0] > acknowledged
        acknowledged = positions[-1]

        journal = SqliteJournal(path)
        stored = journal.load_run("run-1")
        assert stored is not None
        assert journal.position() >= acknowledged
        # The record of the run itself is position 1; groups of three are whole.
        assert (journal.position() - 1) % 3 == 0
        assert stored.state.version == journal.position() - 1
        assert len(stored.state.log) == 2 * stored.state.version
        assert stored.state.values["harness.usage"]["model_calls"] == stored.state.version
        assert len(journal.load_events(0, limit=10**9)) == 3 * stored.state.version
        journal.close()


def test_reading_while_another_process_writes_sees_whole_groups(path: Path, start: Start) -> None:
    child = start("commit_for_ever", path)
    output(child).readline()
    journal = SqliteJournal(path)

    cursor, versions, seen = 0, [0], 0
    while versions[-1] < 90:
        stored = journal.load_run("run-1")
        assert stored is not None
        assert stored.state.version % 3 == 0
        assert len(stored.state.log) == 2 * stored.state.version
        versions.append(stored.state.version)
        events = journal.load_events(cursor, limit=10**9)
        seen += len(events)
        cursor = events[-1].position if events else cursor

    assert child.poll() is None
    assert versions == sorted(versions)
    assert seen == 3 * (cursor - 1)
    journal.close()


def test_processes_that_make_the_same_file_at_once_share_it(path: Path, start: Start) -> None:
    children = [start("begin_a_term", path) for _ in range(4)]

    terms = [int(output(child).read()) for child in children]

    assert sorted(terms) == [1, 2, 3, 4]
    # Two that close at once may each leave the log to the other.
    SqliteJournal(path).close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_journal_that_is_opened_while_another_process_moves_its_log_stays_whole(
    path: Path, start: Start
) -> None:
    first = SqliteJournal(path)
    first.commit(first.begin_term(), [added(), a_round(1)])
    child = start("move_the_log_until_told", path)
    output(child).readline()

    second = SqliteJournal(path)
    child.communicate("go on\n")

    third = SqliteJournal(path)
    assert third.position() == first.position() == 2
    for journal in (first, second, third):
        journal.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_another_process_reads_everything_without_unpickling(path: Path, start: Start) -> None:
    journal = SqliteJournal(path)
    code = CodeStored(code="c0de", blob=b"not even a pickle")
    journal.commit(journal.begin_term(), [code, added(), a_round(1), a_round(2)])

    read = json.loads(output(start("read_without_pickle", path)).read())

    assert read == {"messages": 4, "events": 6, "headings": 1, "code": "not even a pickle"}
    journal.close()


def test_a_disk_that_fails_in_the_middle_loses_nothing_that_was_acknowledged(
    path: Path, start: Start
) -> None:
    ended = json.loads(output(start("write_beyond_the_limit", path)).read())

    assert "run the same command again" in ended["error"]
    assert str(path) in ended["error"]
    journal = SqliteJournal(path)
    assert journal.position() == ended["position"] > 10
    journal.close()
