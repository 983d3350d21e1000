"""The tests, several groups at once; what fails in that crowd is run once more, alone.

    python -m tests
    python -m tests --all

Without ``--all`` those marked ``long`` are left out, each a further case of a promise that another
test keeps; how many is told.

Most groups wait for real processes, each with Rays of its own that the others do not see; beside
them is what only computes. On two cores they take turns, so that a test which gives some process a
time may fail for lack of it. Alone it must pass.
"""

import argparse
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
FAILED = 1
"""The exit status of pytest where tests failed; any other but 0 is no test's."""
SHOW_EACH_S = 30.0
AT_ONCE = 3
"""Groups: a part of what most of them do is waiting, and a machine may have two cores."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that run one after the other.

    Attributes:
        name: For people.
        places: Folders and files below ``tests/``; none are all that no other group has.
        niceness: What is left for those who wait.
    """

    name: str
    places: tuple[str, ...]
    niceness: int = 0


COMPUTING = (
    *("stores", "models", "replay", "batch", "coordination", "core", "executors"),
    *("turn", "planted_bugs", "sweep"),
)
GROUPS = (
    Group("computing", COMPUTING, niceness=5),
    Group("simulation", ("simulation",), niceness=5),
    Group("actors", ("actors",)),
    Group("the others", ()),
    Group("commands", ("cli",)),
    Group("joining", ("joining", "test_interrupted_scripts.py")),
    Group("chaos", ("chaos",)),
    Group("benchmarks", ("benchmarks", "examples")),
    Group("attack", ("attack",)),
)
"""The long ones first, so that both cores are busy to the end."""


class Running:
    """A group whose tests run."""

    def __init__(self, group: Group, folder: Path, *, with_long: bool = True) -> None:
        folder.mkdir()
        self.group = group
        self._marks = [] if with_long else ["-m", "not long"]
        self.output = folder / "output"
        # Sockets of Ray have their paths below it, which must be short.
        self._environment = {**os.environ, "RAY_TMPDIR": str(folder)}
        # Else each of a thousand processes compiles anew all that it imports.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._cache = f"cache_dir={folder / 'cache'}"
        nice = ["nice", "-n", str(group.niceness)]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*nice, *self._pytest(), *_places(group)],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _pytest(self) -> list[str]:
        pytest = [sys.executable, "-m", "pytest", "--durations=10", "-o", self._cache]
        return [*pytest, *self._marks]

    def left_out(self) -> int:
        """How many tests of it were not to be run, by the last line of what it said."""
        said = self.output.read_text(errors="replace").rstrip().rpartition("\n")[2]
        found = re.search(r"(\d+) deselected", said)
        return int(found[1]) if found else 0

    def again(self) -> int:
        """Run those tests again that failed; the exit status."""
        command = [*self._pytest(), "--last-failed", "--last-failed-no-failures=none"]
        return subprocess.run(
            [*command, *_places(self.group)], env=self._environment, check=False
        ).returncode


def _places(group: Group) -> list[str]:
    if group.places:
        return [str(FOLDER / place) for place in group.places]
    return [f"--ignore={FOLDER / place}" for other in GROUPS for place in other.places]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description="Run the tests.")
    parser.add_argument("--all", action="store_true", help="those marked long as well")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the groups with it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As whoever starts a command in the background has it. What tests start would be deaf to
        # Ctrl-C, too, which is what some of them try.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="ht", dir="/tmp"))
    running: list[Running] = []
    try:
        run_groups(GROUPS, folder, running, at_once=AT_ONCE, with_long=options.all)
        _tell(running)
        status = verdict(running)
        if left_out := sum(one.left_out() for one in running):
            print(f"\n{left_out} tests marked long were left out: make test-all runs them as well")
        return status
    finally:
        for left in running:
            left.process.terminate()
            left.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def run_groups(
    groups: Sequence[Group],
    folder: Path,
    running: list[Running],
    *,
    at_once: int,
    with_long: bool = True,
) -> None:
    """Run all groups to their ends, and show which are at work.

    Args:
        groups: In the order in which they begin.
        folder: Where each gets a folder.
        running: Each is added to it when it begins; so whoever breaks this off knows of all.
        at_once: How many run at the same time, at least 1.
        with_long: Whether those marked ``long`` are run as well.
    """
    waiting = deque(groups)
    began = time.monotonic()
    while True:
        while waiting and len(_at_work(running)) < at_once:
            place = folder / str(len(running))
            running.append(Running(waiting.popleft(), place, with_long=with_long))
        if not (working := _at_work(running)):
            return
        names = ", ".join(one.group.name for one in working)
        print(f"{time.monotonic() - began:4.0f} s: {names}", flush=True)
        _until_one_ends(working)


def _at_work(running: Sequence[Running]) -> list[Running]:
    return [one for one in running if one.process.poll() is None]


def _until_one_ends(working: Sequence[Running]) -> None:
    """Wait for that, but no longer than until people are to be shown who works."""
    ends = [os.pidfd_open(one.process.pid) for one in working]
    try:
        select.select(ends, [], [], SHOW_EACH_S)
    finally:
        for end in ends:
            os.close(end)


def _tell(running: Sequence[Running]) -> None:
    for one in running:
        print(f"\n{one.group.name}:", flush=True)
        sys.stdout.buffer.write(one.output.read_bytes())
        sys.stdout.flush()


def verdict(running: Sequence[Running]) -> int:
    """The exit status for groups that have ended, what failed being run again."""
    statuses = {one.group.name: one.process.returncode for one in running}
    if broken := {name: status for name, status in statuses.items() if status not in (0, FAILED)}:
        print(f"pytest could not run: {broken}")
        return 1
    for one in running:
        if one.process.returncode == FAILED:
            print(f"\n{one.group.name}: what failed beside the others, alone:", flush=True)
            if one.again() != 0:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
