"""Processes on this machine: finding the descendants of a command, and ending them."""

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

SWEEP_PAUSE_S = 0.01
END_WITHIN_S = 5.0
"""How long killed processes may take to be gone; longer only in the kernel's own waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as /proc shows it.

    Attributes:
        pid: Its id.
        parent: Id of its parent now; not that of who started it, if that one is gone.
        group: Id of its process group, which is within its session.
        session: Id of the process that began its session.
        started: Clock ticks after boot, which tells it from a later one with its pid.
    """

    pid: int
    parent: int
    group: int
    session: int
    started: int


def list_processes() -> dict[int, Process]:
    """All live processes by pid; those that ended and wait to be reaped are not listed."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := read_process(int(name))) is not None:
            found[process.pid] = process
    return found


def read_process(pid: int) -> Process | None:
    """A process, or None if there is none alive."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name, in parentheses, may hold spaces and parentheses itself.
    facts = text[text.rindex(b")") + 2 :].split()
    if facts[0] in (b"Z", b"X"):
        return None
    return Process(
        pid=pid,
        parent=int(facts[1]),
        group=int(facts[2]),
        session=int(facts[3]),
        started=int(facts[19]),
    )


def carries(pid: int, variables: Mapping[str, str]) -> bool:
    """Whether a process was started with all of these environment variables."""
    entries = _environment(pid)
    return all(f"{name}={value}".encode() in entries for name, value in variables.items())


def _environment(pid: int) -> frozenset[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return frozenset(file.read().split(b"\0"))
    except OSError:
        # Gone, or not ours to look at; then it is not ours to end, either.
        return frozenset()


async def end_processes(variables: Mapping[str, str], *, root: Process | None = None) -> int:
    """Kill processes until none is left.

    Those that are killed were started with `variables` in their environment, or
    descend from `root`, or are in its session. So a process is found in a session of
    its own, or after its parent ended, or with its environment cleared; only one that
    is all of these escapes.

    Args:
        variables: What they carry; at least one.
        root: A process that carries them and leads a session, if it is known; the caller
            has not waited for it, so that its id is still its own.

    Returns:
        How many were killed. After `END_WITHIN_S` it gives up on those that are left.

    Raises:
        ValueError: `variables` is empty, which every process would carry.
    """
    if not variables:
        raise ValueError("name at least one variable that the processes carry")
    return await _end_all(lambda pid: carries(pid, variables), root)


async def end_carriers(name: str, values: Collection[str]) -> int:
    """Kill the processes with one of some values in an environment variable.

    Their descendants are killed as well. One look at all processes serves all values.

    Returns:
        How many were killed. After `END_WITHIN_S` it gives up on those that are left.
    """
    entries = frozenset(f"{name}={value}".encode() for value in values)
    return await _end_all(lambda pid: not entries.isdisjoint(_environment(pid)), None)


async def _end_all(belongs: Callable[[int], bool], root: Process | None) -> int:
    loop = asyncio.get_running_loop()
    until = loop.time() + END_WITHIN_S
    known: dict[int, Process] = {} if root is None else {root.pid: root}
    killed: set[int] = set()
    if root is not None:
        # At once, before anything is searched: a group dies as one, while processes that
        # fork faster than they are found could go on for ever.
        _kill_group(root.pid)
    while True:
        try:
            sweeping = loop.run_in_executor(_sweeper(), _sweep, belongs, known)
        except RuntimeError:
            # Those that are to be killed may have left no room for a thread.
            alive = _sweep(belongs, known)
        else:
            alive = await sweeping
        killed.update(alive)
        if not alive or loop.time() > until:
            return len(killed)
        await asyncio.sleep(SWEEP_PAUSE_S)


def _sweep(belongs: Callable[[int], bool], known: dict[int, Process]) -> list[int]:
    """Kill what is there now; `known` gains what was found."""
    processes = list_processes()
    found = [
        process
        for process in processes.values()
        if process.pid != os.getpid()
        and (_is_known(process, known, processes) or belongs(process.pid))
    ]
    found += _descendants(processes, [process.pid for process in found])
    known.update((process.pid, process) for process in found)
    for group in {process.group for process in found if _is_own(process, known, processes)}:
        _kill_group(group)
    for process in found:
        _kill(process)
    return [process.pid for process in found]


def _is_known(
    process: Process, known: Mapping[int, Process], processes: Mapping[int, Process]
) -> bool:
    if _same(process, known.get(process.pid)):
        return True
    leader = known.get(process.session)
    if leader is None or not _leads(leader):
        return False
    # A session outlives its leader; another process by its pid leads another session.
    now = processes.get(leader.pid)
    return now is None or _same(now, leader)


def _is_own(
    process: Process, known: Mapping[int, Process], processes: Mapping[int, Process]
) -> bool:
    """Whether a command began the session of one of its processes, so that nobody else is in it."""
    if _leads(known.get(process.session)):
        return True
    # A command begins a session, and what began it may be gone by now.
    return process.session not in processes and process.session != os.getsid(0)


def _leads(process: Process | None) -> bool:
    return process is not None and process.session == process.pid


def _same(process: Process, other: Process | None) -> bool:
    # Not its parent: that changes when the parent ends.
    return other is not None and (process.pid, process.started) == (other.pid, other.started)


def _descendants(processes: Mapping[int, Process], roots: Iterable[int]) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    seen = set(roots)
    waiting = list(seen)
    found = []
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                waiting.append(child.pid)
                found.append(child)
    return found


def _kill(process: Process) -> None:
    # The descriptor holds on to one process; a pid could be another's by now.
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(process.pid)
        try:
            now = read_process(process.pid)
            if now is not None and now.started == process.started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@cache
def _sweeper() -> ThreadPoolExecutor:
    # One thread of our own: the loop's pool may be full of tools that block.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="harness-sweep")
