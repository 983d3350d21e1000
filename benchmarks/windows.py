"""Windows of a measured process: what it does in each is counted from outside.

The measured process says when a window begins and ends, and waits until the measuring
one has looked; so looking costs the measured one nothing, however often it is done.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.measure import ProcessTimes, ProcessTree, pss_kb

LOOK_EVERY_S = 0.5
READ_BYTES = 1 << 16
MARK = "@window "


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a process and its descendants used between two marks.

    Attributes:
        wall_s: Seconds on the wall.
        cpu_s: Seconds of CPU, user and system.
        processes: How many of them lived at its end.
        root: Pid of the process itself.
        pss_kb: Their memory at its end, shared parts counted once.
        cpu_by_pid: CPU seconds of each; an ended child of an unseen one is in none of them.
        beside_cpu_s: CPU seconds of the process that was to be watched beside them.
    """

    wall_s: float
    cpu_s: float
    processes: int
    root: int = 0
    pss_kb: int = 0
    cpu_by_pid: Mapping[int, float] = field(default_factory=dict)
    beside_cpu_s: float = 0.0


@contextmanager
def window(name: str) -> Iterator[None]:
    """In the measured process: count what follows."""
    _mark(f"begin {name}")
    yield
    _mark(f"end {name}")


def _mark(said: str) -> None:
    print(MARK + said, flush=True)
    # The measuring process answers when it has looked.
    sys.stdin.readline()


def measure_windows(
    command: Sequence[str], *, cwd: Path, deadline_s: float, beside: int | None = None
) -> dict[str, Window]:
    """Run a command that marks windows, and measure each.

    Args:
        command: What to run; its whole process tree is measured.
        cwd: Where.
        deadline_s: Seconds after which it is killed.
        beside: Pid of a process that is none of the measured ones, but shares the machine.

    Returns:
        The windows by name.

    Raises:
        RuntimeError: It failed, or was killed; what it said is on standard error.
    """
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            look = _Look(process.pid, beside)
            found = _follow(look, process.stdin, process.stdout, deadline_s)
        except TimeoutError:
            process.kill()
            raise RuntimeError(f"{command} did not end within {deadline_s:g} s") from None
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return found


class _Look:
    """Looks at a process tree; keeps what it saw when the window began."""

    def __init__(self, pid: int, beside: int | None) -> None:
        self._pid = pid
        self._tree = ProcessTree(pid)
        self._beside = beside
        self.begin()

    def glance(self) -> None:
        self._tree.read()

    def begin(self) -> None:
        self._before = self._tree.read()
        self._own_before = self._tree.own_s()
        self._beside_before = self._beside_s()
        self._began = time.perf_counter()

    def end(self, at: float) -> Window:
        """The window that ended at a moment."""
        cpu_s = self._tree.read().since(self._before)
        own = self._tree.own_s()
        pids = self._tree.pids()
        return Window(
            wall_s=at - self._began,
            cpu_s=cpu_s,
            processes=len(pids),
            root=self._pid,
            pss_kb=sum(map(pss_kb, pids)),
            cpu_by_pid={pid: own[pid] - self._own_before.get(pid, 0.0) for pid in own},
            beside_cpu_s=self._beside_s() - self._beside_before,
        )

    def _beside_s(self) -> float:
        times = None if self._beside is None else ProcessTimes.read(self._beside)
        return 0.0 if times is None else times.own_s


def _follow(
    look: _Look, answers: IO[bytes], marks: IO[bytes], deadline_s: float
) -> dict[str, Window]:
    found: dict[str, Window] = {}
    for line in _lines(look, marks, time.monotonic() + deadline_s):
        if not line.startswith(MARK):
            continue
        now = time.perf_counter()
        what, _, name = line.removeprefix(MARK).strip().partition(" ")
        if what == "begin":
            look.begin()
        else:
            found[name] = look.end(now)
        with suppress(BrokenPipeError):
            # One that has died meanwhile is told by its exit status.
            answers.write(b"\n")
    return found


def _lines(look: _Look, marks: IO[bytes], deadline: float) -> Iterator[str]:
    """What a process says, line by line; looks at it now and then meanwhile."""
    left = b""
    while True:
        # Not by `readline`: lines in its buffer are none that `select` sees.
        while not select.select([marks], [], [], LOOK_EVERY_S)[0]:
            look.glance()
            if time.monotonic() > deadline:
                raise TimeoutError
        said = os.read(marks.fileno(), READ_BYTES)
        if not said:
            return
        *whole, left = (left + said).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
