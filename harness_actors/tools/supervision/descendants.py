"""The processes below this one: as its own reaper it sees, kills and collects all of them.

What they started stays below a child subreaper, also in a session of its own, after its
parent ended, or with its environment cleared.
"""

import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
_C = ctypes.CDLL(None)
_SOME_BYTES = 4096


def become_subreaper() -> None:
    """From here on orphans below this process become its children."""
    if _C.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this kernel has no child subreapers")


def children(pid: int) -> list[int]:
    """Children of a process, those that ended and wait to be reaped included.

    Source: proc_pid_task(5); each thread has its own. The kernel may leave some out while
    they come and go, so one look is never the last.
    """
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def below(pid: int, spared: Collection[int] = ()) -> Iterator[int]:
    """All descendants of a process, but not the `spared` children with what is below them."""
    waiting = [child for child in children(pid) if child not in spared]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += children(found)


def kill_below(spared: Collection[int] = ()) -> set[int]:
    """Kill all descendants of this process that can be seen now; returns their pids."""
    groups = {pid: _group(pid) for pid in below(os.getpid(), spared)}
    alive = {pid: group for pid, group in groups.items() if group is not None}
    # Groups first: a group dies as one, while processes that fork faster than they are
    # found could go on for ever. A group is never larger than a session, and the sessions
    # of commands were begun below, so nobody else is in one.
    for group in set(alive.values()) - {os.getpgrp(), 0}:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for pid in alive:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return set(alive)


def _group(pid: int) -> int | None:
    """The process group of a process; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    state, _, group = text[text.rindex(b")") + 2 :].split()[:3]
    return None if state in (b"Z", b"X") else int(group)


def reap() -> Iterator[tuple[int, int]]:
    """Collect children that ended, with their exit codes (minus the signal where one ended it).

    Raises:
        ChildProcessError: There are no children left, and so nothing is below this process.
    """
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def woken_by_children() -> int:
    """A descriptor that can be read whenever a child has ended."""
    readable, writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def drain(descriptor: int) -> None:
    with suppress(BlockingIOError):
        os.read(descriptor, _SOME_BYTES)
