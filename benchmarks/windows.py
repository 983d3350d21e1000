"""Windows of a measured process: what it does in each is counted from outside.

The measured process says when a window begins and ends, and waits until the measuring
one has looked; so looking costs the measured one nothing, however often it is done.
"""

import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.measure import ProcessTree

LOOK_EVERY_S = 0.5
MARK = "@window "


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a process and its descendants used between two marks.

    Attributes:
        wall_s: Seconds on the wall.
        cpu_s: Seconds of CPU, user and system.
        processes: How many of them lived at its end.
    """

    wall_s: float
    cpu_s: float
    processes: int


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


def measure_windows(command: Sequence[str], *, cwd: Path, deadline_s: float) -> dict[str, Window]:
    """Run a command that marks windows, and measure each.

    Args:
        command: What to run; its whole process tree is measured.
        cwd: Where.
        deadline_s: Seconds after which it is killed.

    Returns:
        The windows by name.

    Raises:
        RuntimeError: It failed, or was killed; what it said is on standard error.
    """
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            found = _follow(process.pid, process.stdin, process.stdout, deadline_s)
        except TimeoutError:
            process.kill()
            raise RuntimeError(f"{command} did not end within {deadline_s:g} s") from None
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return found


def _follow(pid: int, answers: IO[str], marks: IO[str], deadline_s: float) -> dict[str, Window]:
    tree = ProcessTree(pid)
    deadline = time.monotonic() + deadline_s
    found: dict[str, Window] = {}
    before, began = tree.read(), time.perf_counter()
    while True:
        while not select.select([marks], [], [], LOOK_EVERY_S)[0]:
            tree.read()
            if time.monotonic() > deadline:
                raise TimeoutError
        line = marks.readline()
        if not line:
            return found
        if not line.startswith(MARK):
            continue
        now = time.perf_counter()
        what, _, name = line.removeprefix(MARK).strip().partition(" ")
        reading = tree.read()
        if what == "begin":
            before, began = reading, time.perf_counter()
        else:
            found[name] = Window(
                wall_s=now - began, cpu_s=reading.since(before), processes=len(tree.pids())
            )
        answers.write("\n")
        answers.flush()
