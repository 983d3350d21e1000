"""Processes are known by pid and start time, and gone means gone."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.actors import processes
from harness_actors.actors.carrying import carries, carry, put_down
from harness_actors.actors.cell_processes import coordinators_of
from harness_actors.actors.local import LocalRuntime
from harness_actors.actors.processes import (
    COMPANION_ROLE,
    MachineProcesses,
    end_processes,
    is_alive,
    mark_of_this_process,
    this_node,
    wait_until_gone,
)
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal

CARRIES = """
import sys
from pathlib import Path
from harness_actors.actors.carrying import carry
carry(Path({path!r}))
"""
PRINTS_ITS_MARK = """
import sys
from harness_actors.actors.processes import mark_of_this_process
mark = mark_of_this_process("child")
print(mark.pid, mark.started, flush=True)
sys.stdin.read()
"""


class Child:
    """A real process that lives until its input closes."""

    def __init__(self, source: str = PRINTS_ITS_MARK) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        pid, started = map(int, self.process.stdout.readline().split())
        self.mark = ProcessMark(role="child", node=this_node(), pid=pid, started=started)

    def collect(self) -> int:
        """Wait until it is dead, and take its exit status."""
        return self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.close()


def test_a_process_knows_its_own_mark() -> None:
    mark = mark_of_this_process("me")
    assert (mark.role, mark.pid, mark.node) == ("me", os.getpid(), this_node())
    assert mark.started > 0
    assert is_alive(mark)


def test_a_running_process_is_alive(child: Child) -> None:
    assert is_alive(child.mark)
    assert not wait_until_gone(child.mark, timeout_s=0.05)


def test_a_killed_process_that_nobody_collected_is_gone(child: Child) -> None:
    os.kill(child.mark.pid, signal.SIGKILL)
    assert wait_until_gone(child.mark, timeout_s=10)
    assert os.waitid(os.P_PID, child.mark.pid, os.WEXITED | os.WNOWAIT) is not None, "a zombie"
    assert not is_alive(child.mark)


def test_a_collected_process_is_gone(child: Child) -> None:
    child.process.kill()
    child.collect()
    assert not is_alive(child.mark)
    assert wait_until_gone(child.mark, timeout_s=0)


def test_another_process_with_the_same_pid_is_not_the_one(child: Child) -> None:
    earlier = ProcessMark(
        role="child", node=this_node(), pid=child.mark.pid, started=child.mark.started - 1
    )
    assert not is_alive(earlier)
    assert wait_until_gone(earlier, timeout_s=0)
    assert end_processes([earlier], timeout_s=0) == []
    assert is_alive(child.mark), "it was not killed for its pid"


def test_a_process_of_another_machine_or_boot_is_none_of_ours(child: Child) -> None:
    elsewhere = ProcessMark(
        role="child", node="another boot", pid=child.mark.pid, started=child.mark.started
    )
    assert not is_alive(elsewhere)
    assert end_processes([elsewhere], timeout_s=0) == []
    assert is_alive(child.mark)


async def test_the_end_of_a_process_is_awaited(child: Child) -> None:
    killer = threading.Timer(0.1, child.process.kill)
    killer.start()
    assert await MachineProcesses().gone(child.mark, timeout_s=10)
    killer.join()


async def test_a_process_that_does_not_end_is_told_after_the_deadline(child: Child) -> None:
    assert not await MachineProcesses().gone(child.mark, timeout_s=0.05)


def test_processes_of_earlier_terms_are_ended(child: Child) -> None:
    other = Child()
    assert end_processes([child.mark, other.mark], timeout_s=10) == []
    assert [child.collect(), other.collect()] == [-signal.SIGKILL] * 2
    other.close()


def test_a_stopped_process_is_ended_too(child: Child) -> None:
    os.kill(child.mark.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.mark.pid, os.WSTOPPED)
    assert is_alive(child.mark), "stopped is not dead"
    assert end_processes([child.mark], timeout_s=10) == []


def test_the_calling_process_does_not_end_itself() -> None:
    assert end_processes([mark_of_this_process("me")], timeout_s=0) == []


def test_a_process_with_an_odd_name_is_known(child: Child) -> None:
    odd = Child(
        "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0)\n" + PRINTS_ITS_MARK
    )
    assert is_alive(odd.mark)
    assert odd.mark.pid == odd.process.pid
    odd.close()


def test_a_stopped_process_is_killed_like_any_other(child: Child) -> None:
    os.kill(child.mark.pid, signal.SIGSTOP)
    MachineProcesses().kill(child.mark)
    assert wait_until_gone(child.mark, timeout_s=10)


def test_whoever_has_the_pid_by_now_is_not_killed(child: Child) -> None:
    MachineProcesses().kill(replace(child.mark, started=child.mark.started - 1))
    # One that is killed may seem alive for a moment, but does not end by itself.
    assert child.process.stdin is not None
    child.process.stdin.close()
    assert child.collect() == 0
    child.process.stdin = None  # closed already


def test_a_companion_is_given_time_to_end_what_is_below_it(child: Child) -> None:
    mark = replace(child.mark, role=COMPANION_ROLE + "agent_turn")
    assert child.process.stdin is not None
    ends_by_itself = threading.Timer(0.3, child.process.stdin.close)
    ends_by_itself.start()
    assert end_processes([mark], timeout_s=20) == []
    assert child.collect() == 0, "it was killed"
    ends_by_itself.join()
    child.process.stdin = None  # closed already


def test_a_companion_that_does_not_end_is_killed(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "COMPANION_S", 0.1)
    mark = replace(child.mark, role=COMPANION_ROLE + "agent_turn")
    assert end_processes([mark], timeout_s=20) == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An empty journal."""
    SqliteJournal(tmp_path / "runs.db").close()
    return tmp_path / "runs.db"


@pytest.fixture
def serving(store: Path) -> Iterator[Child]:
    """A process that serves the journal."""
    child = Child(CARRIES.format(path=str(store)) + PRINTS_ITS_MARK)
    yield child
    child.close()


def test_a_process_that_a_journal_names_is_ended_only_if_it_serves_it(
    store: Path, child: Child, serving: Child
) -> None:
    named = [child.mark, serving.mark]

    assert MachineProcesses().end(named, journal=store, timeout_s=20) == []

    assert serving.collect() == -signal.SIGKILL
    assert is_alive(child.mark), "it was killed because a file said so"


def test_a_copy_of_a_journal_ends_nothing_of_the_cell_of_the_other(
    store: Path, serving: Child
) -> None:
    copy = store.with_name("copy.db")
    copy.write_bytes(store.read_bytes())

    assert MachineProcesses().end([serving.mark], journal=copy, timeout_s=0) == []
    assert is_alive(serving.mark)
    # And one that was moved is the same.
    store.rename(moved := store.with_name("moved.db"))
    assert carries(serving.mark.pid, moved)


def test_a_coordinator_is_believed_only_if_it_serves_the_journal(
    store: Path, child: Child, serving: Child
) -> None:
    journal = SqliteJournal(store)
    marks = [replace(one.mark, role="coordinator") for one in (child, serving)]
    journal.commit(journal.begin_term(), marks)
    journal.close()

    assert coordinators_of(store) == marks[1:]


def test_a_process_that_serves_a_journal_no_longer_is_none_of_its_processes(store: Path) -> None:
    carry(store)
    assert carries(os.getpid(), store)
    carry(store)
    put_down(store)
    put_down(store)
    assert not carries(os.getpid(), store)
    assert carry(store.with_name("nowhere.db")) is None


def test_a_process_of_another_user_is_never_ours(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry(store)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not carries(os.getpid(), store)
    monkeypatch.undo()
    assert carries(os.getpid(), store)
    put_down(store)


async def test_a_cell_that_is_closed_leaves_the_process_that_had_it_alone(store: Path) -> None:
    runtime = await LocalRuntime.open(store, "one")
    assert carries(os.getpid(), store)
    await runtime.close()
    assert not carries(os.getpid(), store)
