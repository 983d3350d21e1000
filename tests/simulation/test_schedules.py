"""Runs survive whatever happens, over thousands of schedules."""

import io
import os
import subprocess
import sys
from random import Random

import pytest

from tests.simulation.progress import Progress
from tests.simulation.schedule import Schedule

SCHEDULES = 400
"""Of the protocol; `make simulate` goes through more."""


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user has it; in a process of its own, for it sets the hash seed."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(400)
def test_all_promises_hold_over_hundreds_of_schedules_of_the_protocol() -> None:
    done = simulate("--mode", "protocol", "--seeds", str(SCHEDULES))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(400)
def test_all_promises_hold_over_80_schedules_with_the_journal_on_disk() -> None:
    done = simulate("--mode", "disk", "--seeds", "80")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(200)
def test_all_promises_hold_over_15_schedules_whose_journal_is_taken_away() -> None:
    done = simulate("--mode", "moved", "--seeds", "15")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_seed_takes_the_same_steps() -> None:
    seed = str(Random(os.getpid()).randrange(1, SCHEDULES))
    first, second = (simulate("--seed", seed, "--trace").stdout for _ in range(2))
    assert len(first.splitlines()) > 50
    assert first == second


def test_a_trace_changes_nothing() -> None:
    lines: list[str] = []
    watched = Schedule(7, trace=lambda at, who, what: lines.append(f"{at} {who} {what}")).run()
    assert lines
    assert watched == Schedule(7).run()


class Terminal(io.StringIO):
    """Something that people look at."""

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal_and_gone_at_the_end() -> None:
    times = iter((0.0, 2.0, 4.0))
    shown = Terminal()
    progress = Progress("protocol", 1000, shown, lambda: next(times))
    progress(100)
    progress(200)
    assert "200 of 1000 schedules, 50 per second, 0:16 left" in shown.getvalue()
    assert "\n" not in shown.getvalue()
    progress.end()
    assert shown.getvalue().endswith("\r\x1b[K")


def test_progress_is_a_line_now_and_then_elsewhere() -> None:
    times = iter((0.0, 2.0, 31.0, 32.0))
    shown = io.StringIO()
    progress = Progress("disk", 1000, shown, lambda: next(times))
    for done in (10, 310, 320):
        progress(done)
    progress.end()
    assert shown.getvalue() == "disk: 310 of 1000 schedules, 10 per second, 1:09 left\n"


def test_what_is_left_out_does_not_happen() -> None:
    lines: list[str] = []
    without = frozenset({"kill", "stop", "early", "commit", "driver", "slow", "lost", "twice"})
    for seed in range(1, 6):
        Schedule(seed, without=without, trace=lambda _at, who, what: lines.append(who + what)).run()
    assert lines
    assert not [line for line in lines if line.startswith("!") or "breaks" in line]
