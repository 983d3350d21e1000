"""Runs survive whatever happens, over thousands of schedules."""

import os
import subprocess
import sys
from random import Random

import pytest

from tests.simulation.schedule import Schedule


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user has it; in a process of its own, for it sets the hash seed."""
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(800)
def test_all_promises_hold_over_5000_schedules_of_the_protocol() -> None:
    done = simulate("--mode", "protocol", "--seeds", "5000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(400)
def test_all_promises_hold_over_200_schedules_with_the_journal_on_disk() -> None:
    done = simulate("--mode", "disk", "--seeds", "200")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_seed_takes_the_same_steps() -> None:
    seed = str(Random(os.getpid()).randrange(1, 5000))
    first, second = (simulate("--seed", seed, "--trace").stdout for _ in range(2))
    assert len(first.splitlines()) > 50
    assert first == second


def test_a_trace_changes_nothing() -> None:
    lines: list[str] = []
    watched = Schedule(7, trace=lambda at, who, what: lines.append(f"{at} {who} {what}")).run()
    assert lines
    assert watched == Schedule(7).run()


def test_what_is_left_out_does_not_happen() -> None:
    lines: list[str] = []
    without = frozenset({"kill", "stop", "early", "commit", "driver", "slow", "lost", "twice"})
    for seed in range(1, 6):
        Schedule(seed, without=without, trace=lambda _at, who, what: lines.append(who + what)).run()
    assert lines
    assert not [line for line in lines if line.startswith("!") or "breaks" in line]
