"""The hunt for one planted bug: which test, or which promise of the simulator, finds it."""

import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.planted_bugs.bug import Bug
from tests.planted_bugs.tree import Ran, Tree

LIMIT_S = 1200.0
"""How long all named tests of a bug may take together."""
ROOM_SEEDS = 2000
"""Schedules for a bug that says of no place where it is found."""
SIMULATED = ("coordination", "turn", "executors", "actors", "stores")
"""Rooms whose code the simulator runs."""
TESTS_OF = {
    "executors": ("tests/executors", "tests/turn"),
    "turn": ("tests/turn", "tests/executors"),
}

# What a case is called may have spaces.
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s\[]+(?:\[.*?\](?= - |$))?)", re.MULTILINE)
_BROKEN = re.compile(r"^seed \d+ breaks: ([^:]+):", re.MULTILINE)
_AGAIN = re.compile(r"--mode (\w+) --seed (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a bug.

    Attributes:
        bug: The bug.
        found_by: The test, or the promise that the simulator saw broken; empty where none did.
        problem: Why that cannot be told: the tests did not run, or fail without the bug, too.
        seconds: How long it took.
    """

    bug: Bug
    found_by: str = ""
    problem: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        outcome = "found" if self.found_by else "no verdict" if self.problem else "SURVIVED"
        by = self.found_by or self.problem
        return f"{outcome:10} {self.seconds:6.1f} s  {self.bug.name}" + (f": {by}" if by else "")


def hunt(bug: Bug, *, without_ray: bool = False, limit_s: float = LIMIT_S) -> Verdict:
    """Plant a bug in a copy of the project, and run what should find it, until something does.

    A bug is found by a test that fails with it, also alone, and passes without it. A run that takes
    too long finds nothing: only a test's own limit is a failure of that test.

    Args:
        bug: The bug.
        without_ray: Leave out the tests that need Ray.
        limit_s: How long each of the commands may take, in seconds.
    """
    began = time.monotonic()
    found_by = problem = ""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = Tree.copied(Path(folder), bug)
        for arguments in _commands(bug, without_ray):
            ran = tree.run(arguments, limit_s)
            found_by, again = _finder(ran, arguments)
            if found_by:
                problem = _doubt(tree, again, limit_s)
                break
            problem = problem or _problem(ran)
    if problem:
        found_by = ""
    return Verdict(bug=bug, found_by=found_by, problem=problem, seconds=time.monotonic() - began)


def _commands(bug: Bug, without_ray: bool) -> Iterator[list[str]]:
    tests, seeds = bug.tests, bug.seeds
    if not tests and not seeds:
        tests = TESTS_OF.get(bug.room, (f"tests/{bug.room}",))
        seeds = ROOM_SEEDS if bug.room in SIMULATED else 0
    if tests:
        chosen = ["-m", "not ray"] if without_ray else []
        yield [*_PYTEST, "-x", *chosen, *tests]
    if seeds:
        yield ["-m", "tests.simulation", "--seeds", str(seeds)]


_PYTEST = ("-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider")


def _finder(ran: Ran, arguments: list[str]) -> tuple[str, list[str]]:
    """Who found it, empty for nobody; and the command that shows it alone."""
    if ran.status != 1:
        return "", []
    if "tests.simulation" in arguments:
        broken, seed = _BROKEN.search(ran.output), _AGAIN.search(ran.output)
        if broken is None or seed is None:
            return "", []
        again = ["-m", "tests.simulation", "--mode", seed[1], "--seed", seed[2]]
        return f"the simulator's {broken[1]!r}", again
    failed = _FAILED.search(ran.output)
    return ("", []) if failed is None else (failed[1], [*_PYTEST, failed[1]])


def _doubt(planted: Tree, again: list[str], limit_s: float) -> str:
    """Why a failure says nothing of the bug; empty where it does."""
    if planted.run(again, limit_s).status == 0:
        return f"{again[-1]} failed once, and passes alone, also with the bug"
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        ran = Tree.copied(Path(folder)).run(again, limit_s)
    return "" if ran.status == 0 else f"{again[-1]} fails without the bug, too\n{ran.output}"


def _problem(ran: Ran) -> str:
    if ran.status is None:
        return "the tests took too long; none of them failed"
    # 5 is pytest's word for: none was chosen.
    return "" if ran.status in (0, 5) else f"exit status {ran.status}:\n{ran.output[-3000:]}"
