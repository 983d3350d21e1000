"""Processes of a cell, known by pid and start time, and the certainty that they are gone."""

import asyncio
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

from harness_actors.actors.carrying import carries
from harness_actors.records import ProcessMark

COMPANION_ROLE = "supervisor of "
"""Begins the role of a process that ends by itself with the actor which is named after it."""
COMPANION_S = 5.0
"""How long such processes may take."""


class Processes(Protocol):
    """The processes of this machine, as far as a cell must know that they are gone."""

    async def gone(self, mark: ProcessMark, *, timeout_s: float) -> bool:
        """Return when a process is gone: True; or False when the time is up."""
        ...

    def kill(self, mark: ProcessMark) -> None:
        """Kill a process, unless it is gone or another has its pid by now."""
        ...

    def end(
        self, marks: Iterable[ProcessMark], *, journal: Path, timeout_s: float
    ) -> list[ProcessMark]:
        """Kill processes that serve a journal, and block until they are gone.

        Those that it names and that do not carry its mark are passed by; see `carrying`.

        Returns:
            Those that are left.
        """
        ...

    async def end_tools(self, run_ids: Sequence[str]) -> None:
        """Kill what tools of runs that nobody serves have left; return when it is gone."""
        ...


class MachineProcesses:
    """The processes of this machine."""

    async def gone(self, mark: ProcessMark, *, timeout_s: float) -> bool:
        return await asyncio.to_thread(wait_until_gone, mark, timeout_s=timeout_s)

    def kill(self, mark: ProcessMark) -> None:
        kill_process(mark)

    def end(
        self, marks: Iterable[ProcessMark], *, journal: Path, timeout_s: float
    ) -> list[ProcessMark]:
        return end_processes(carriers_among(marks, journal), timeout_s=timeout_s)

    async def end_tools(self, run_ids: Sequence[str]) -> None:
        # Seldom needed, and this module is loaded by those who only look.
        from harness_actors.tools.processes import end_carriers
        from harness_actors.turn.services import RUN_VARIABLE

        await end_carriers(RUN_VARIABLE, run_ids)


@cache
def this_node() -> str:
    """Names this machine since it was booted; a pid of another boot means nothing."""
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    return boot_id.read_text().strip() if boot_id.exists() else os.uname().nodename


def mark_of_this_process(role: str) -> ProcessMark:
    """How the journal knows the calling process."""
    return mark_of(os.getpid(), role)


def mark_of(pid: int, role: str) -> ProcessMark:
    """A process of this machine by its pid; one that is gone is known to be so."""
    return ProcessMark(role=role, node=this_node(), pid=pid, started=_started(pid) or 0)


def _started(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None where it is gone.

    Source: proc(5), field 22 of /proc/PID/stat; the name in field 2 may hold anything.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = text[text.rindex(")") + 2 :].split()
    # A zombie runs no code any more, whoever has yet to collect it.
    return None if state in "ZX" else int(rest[18])


def is_alive(mark: ProcessMark) -> bool:
    """Whether the marked process runs on this machine still."""
    return mark.node == this_node() and _started(mark.pid) == mark.started


def carriers_among(marks: Iterable[ProcessMark], journal: Path) -> list[ProcessMark]:
    """Those of the processes that a journal names which do serve it; see `carrying`."""
    alive = [mark for mark in marks if is_alive(mark)]
    carriers = [mark for mark in alive if carries(mark.pid, journal)]
    # Another process may have had the pid while it was looked at.
    return [mark for mark in carriers if is_alive(mark)]


def memory_mb(marks: Iterable[ProcessMark]) -> float | None:
    """What processes of this machine take together, in MB; those that are gone take nothing.

    Pages that several share count for each by its share. None where that cannot be told.
    """
    sizes = [_size_kb(mark.pid) for mark in marks if is_alive(mark)]
    known = [size for size in sizes if size is not None]
    return sum(known) / 1024 if len(known) == len(sizes) else None


def _size_kb(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), None)


def wait_until_gone(mark: ProcessMark, *, timeout_s: float) -> bool:
    """Block until the process is gone.

    Returns:
        Whether it is; False when `timeout_s` seconds have passed.
    """
    deadline = time.monotonic() + timeout_s
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(mark.pid)
        try:
            # The pid may have been another process's when it was opened; so look again.
            while is_alive(mark) and (left := deadline - time.monotonic()) > 0:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(1000 * min(left, 1.0))
        finally:
            os.close(handle)
    return not is_alive(mark)


def kill_process(mark: ProcessMark) -> None:
    """Kill a process of this machine, unless it is gone or another has its pid by now.

    One that is stopped is killed as well.
    """
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(mark.pid)
        try:
            if is_alive(mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def end_processes(marks: Iterable[ProcessMark], *, timeout_s: float) -> list[ProcessMark]:
    """Kill processes of earlier terms on this machine, and wait until they are gone.

    Companions of an actor end by themselves with it, when they have ended what is below
    them; only one that does not is killed.

    Returns:
        Those that are still there after `timeout_s` seconds.
    """
    alive = [mark for mark in marks if is_alive(mark) and mark.pid != os.getpid()]
    companions = [mark for mark in alive if mark.role.startswith(COMPANION_ROLE)]
    actors = [mark for mark in alive if mark not in companions]
    deadline = time.monotonic() + timeout_s
    for mark in actors:
        kill_process(mark)
    for mark in _left(companions, min(deadline, time.monotonic() + COMPANION_S)):
        kill_process(mark)
    return _left(alive, deadline)


def _left(marks: Iterable[ProcessMark], deadline: float) -> list[ProcessMark]:
    """Those that are still there at a moment of the monotonic clock."""
    return [
        mark
        for mark in marks
        if not wait_until_gone(mark, timeout_s=max(0.0, deadline - time.monotonic()))
    ]
