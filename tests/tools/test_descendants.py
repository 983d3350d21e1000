"""Which processes are below another one."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count

import pytest

from harness_actors.tools.supervision import descendants
from harness_actors.tools.supervision.descendants import (
    KILLED_TOGETHER,
    LOOKED_AT,
    children,
    count_below,
    kill_below,
)

NO_PID = 1 << 22
"""Above all that a kernel gives."""


def test_children_that_another_thread_has_started_are_children_too() -> None:
    started: list[subprocess.Popen[bytes]] = []
    done = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        done.wait()  # they belong to the thread as long as it lives

    thread = threading.Thread(target=start)
    thread.start()
    try:
        while not started:
            thread.join(0.01)
        assert started[0].pid in children(os.getpid())
    finally:
        done.set()
        thread.join()
        for one in started:
            one.communicate(b"\n")


def test_those_who_fork_faster_than_they_are_found_are_counted_up_to_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(descendants, "children", lambda pid: [pid + 1, pid + 1])
    assert count_below(NO_PID, 20) == 21


def test_a_look_for_those_to_be_killed_ends_though_there_are_ever_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def endless(pid: int, spared: object) -> Iterator[int]:
        for number in count(NO_PID):
            looked_at.append(number)
            yield number

    monkeypatch.setattr(descendants, "below", endless)
    assert kill_below() == set()
    assert len(looked_at) == LOOKED_AT


def test_a_group_is_killed_with_those_of_it_that_are_not_found_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = "sleep 300 & echo $!; wait"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True, text=True
    ) as found:
        assert found.stdout is not None
        unfound = os.pidfd_open(int(found.stdout.readline()))
        monkeypatch.setattr(descendants, "below", lambda pid, spared: iter([found.pid]))
        assert kill_below() == {found.pid}
    try:
        poll = select.poll()
        poll.register(unfound, select.POLLIN)
        assert poll.poll(10_000), "it would have forked on"
    finally:
        os.close(unfound)


def test_of_a_crowd_those_that_were_killed_need_not_wait_to_die(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = [subprocess.Popen(["sleep", "300"]) for _ in range(KILLED_TOGETHER + 1)]
    pids = [one.pid for one in crowd]
    first: list[int] = []
    monkeypatch.setattr(descendants, "below", lambda pid, spared: iter(pids))
    monkeypatch.setattr(descendants, "go_first", first.append)
    assert kill_below() == set(pids)
    for one in crowd:
        one.wait()
    assert first == pids[:KILLED_TOGETHER], "the last one is no crowd"


def test_nobody_who_is_to_be_killed_is_waited_for_while_it_begins_a_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stat(pid: int) -> None:
        pytest.fail("it is locked meanwhile")

    ended, live = (subprocess.Popen(["sleep", seconds]) for seconds in ("0", "300"))
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(descendants, "below", lambda pid, spared: iter([ended.pid, live.pid]))
    monkeypatch.setattr(descendants, "_facts", stat)
    assert kill_below() == {live.pid}, "the other one has ended"
    assert (ended.wait(), live.wait()) == (0, -signal.SIGKILL)
