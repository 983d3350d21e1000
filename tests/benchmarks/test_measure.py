"""CPU is counted for whole process trees, between marks, whatever becomes of the processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measure import CpuReading, ProcessTimes, ProcessTree, Spread
from benchmarks.windows import measure_windows

ROOT = Path(__file__).parents[2]

# Burns CPU by its own clock, so that a busy machine only takes longer.
BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def measured(program: str, deadline_s: float = 60) -> dict[str, float]:
    """CPU seconds of the windows that a program marks."""
    header = "from benchmarks.windows import window\nimport subprocess, sys, time\n"
    command = [sys.executable, "-c", header + program]
    windows = measure_windows(command, cwd=ROOT, deadline_s=deadline_s)
    return {name: window.cpu_s for name, window in windows.items()}


def test_only_what_is_done_within_a_window_counts() -> None:
    burn = BURN.format(seconds=0.4)
    program = f"{burn}with window('idle'): pass\nwith window('busy'):\n"
    program += "".join(f"    {line}\n" for line in burn.splitlines())

    cpu_s = measured(program)

    assert cpu_s["idle"] < 0.2
    assert 0.35 < cpu_s["busy"] < 0.8


def test_a_child_that_has_ended_counts_whether_or_not_it_was_waited_for() -> None:
    child = repr(BURN.format(seconds=0.4))
    program = (
        "with window('waited'):\n"
        f"    subprocess.run([sys.executable, '-c', {child}])\n"
        "with window('not waited'):\n"
        f"    child = subprocess.Popen([sys.executable, '-c', {child} + 'print()'],"
        " stdout=subprocess.PIPE)\n"
        "    child.stdout.read()\n"
        "child.wait()\n"
    )

    cpu_s = measured(program)

    assert 0.35 < cpu_s["waited"] < 1.0
    assert 0.35 < cpu_s["not waited"] < 1.0


def test_a_process_whose_parent_died_stays_in_the_tree(tmp_path: Path) -> None:
    orphan = "import sys; sys.stdin.read()"
    middle = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {orphan!r}], stdin=0)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", middle], stdin=reading, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(reading)
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        tree = ProcessTree(process.pid)
        tree.read()
        process.kill()
        process.wait()
        assert tree.pids() == [pid]
        os.close(writing)


def test_what_a_parent_was_told_and_what_was_seen_count_once() -> None:
    before = CpuReading(own_s=10.0, waited_s=2.0, ended_s=1.0)
    after = CpuReading(own_s=13.0, waited_s=4.5, ended_s=3.0)

    # 3 s were seen, 2 s of them of processes that ended; parents were told of 2.5 s.
    assert after.since(before) == pytest.approx(3.5)


def test_a_command_that_fails_or_hangs_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        measured("sys.exit(3)")
    with pytest.raises(RuntimeError, match="did not end within"):
        measured("time.sleep(60)", deadline_s=0.2)


def test_a_pid_that_is_not_there_has_no_times() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert ProcessTimes.read(process.pid) is None
    assert ProcessTimes.read(os.getpid()) is not None


def test_a_spread_is_the_middle_and_both_ends() -> None:
    assert Spread.of([5.0, 1.0, 2.0]) == Spread(median=2.0, least=1.0, most=5.0)
