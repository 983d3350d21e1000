"""The processes below this one: as its own reaper it sees, kills and collects all of them.

What they started stays below a child subreaper, also in a session of its own, after its
parent ended, or with its environment cleared.
"""

import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice

PR_SET_CHILD_SUBREAPER = 36
_C = ctypes.CDLL(None)
_SOME_BYTES = 4096
KILLED_TOGETHER = 64
"""How many are looked up before those found are killed."""
LOOKED_AT = 4096
"""How many are killed before those that ended are collected."""


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


def count_below(pid: int, most: int) -> int:
    """How many descendants a process has, counted up to one more than `most`.

    No further: those who fork faster than they are found would be counted for ever.
    """
    return sum(1 for _ in islice(below(pid), most + 1))


def kill_below(spared: Collection[int] = ()) -> set[int]:
    """Kill descendants of this process that can be seen now; returns their pids.

    It is to be called until there are none: it kills by and by while it looks, and looks at
    no more than some thousands, which is enough to win against those who fork.
    """
    killed = set[int]()
    found = islice(below(os.getpid(), spared), LOOKED_AT)
    while some := list(islice(found, KILLED_TOGETHER)):
        groups = {pid: group for pid in some if (group := _group(pid)) is not None}
        # Groups first: a group dies as one, its members that are not found yet included. It is
        # never larger than a session, and the sessions of commands were begun below, so nobody
        # else is in one.
        for group in set(groups.values()) - {os.getpgrp(), 0}:
            with suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for pid in groups:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                if len(some) == KILLED_TOGETHER:
                    # Of a crowd each would wait for its turn to die, while the others fork on.
                    go_first(pid)
        killed |= groups.keys()
    return killed


def go_first(pid: int = 0) -> None:
    """Have a process run before all that compete with it, where we may ask for that.

    What it starts competes as usual, with the usual niceness.

    Args:
        pid: Which one; 0 for this one. Among thousands that fork, its turn would come too late to
            end them.
    """
    with suppress(OSError):
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(pid, policy, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal or a tracer; False where there is none."""
    facts = _facts(pid)
    return facts is not None and facts[0] in (b"T", b"t")


def _group(pid: int) -> int | None:
    """The process group of a process; None if it has ended."""
    # Not from `stat`: who reads that waits while the process begins a program, and among
    # thousands it may wait a minute for its turn to do so.
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            state = file.read().partition(b"\nState:\t")[2][:1]
        return None if state in (b"Z", b"X") else os.getpgid(pid)
    except OSError:
        return None


def _facts(pid: int) -> list[bytes] | None:
    """State of a process, and what else `proc_pid_stat(5)` has after that; not for a crowd."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].split()


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
