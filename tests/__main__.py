"""All tests, four groups at once; what fails in that crowd is run once more, alone.

    python -m tests

Three groups wait for real processes, each with Rays of its own that the others do not see; after
them is what only computes. On two cores they take turns, so that a test which gives some process a
time may fail for lack of it. Alone it must pass.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
FAILED = 1
"""The exit status of pytest where tests failed; any other but 0 is no test's."""
SHOW_EACH_S = 30.0


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
    *("simulation", "stores", "models", "replay", "batch", "coordination", "core", "executors"),
    *("turn", "planted_bugs", "sweep"),
)
GROUPS = (
    Group("computing", COMPUTING, niceness=5),
    Group("actors", ("actors",)),
    Group("commands", ("cli", "joining", "attack", "test_interrupted_scripts.py")),
    Group("the others", ()),
)


class Running:
    """A group whose tests run."""

    def __init__(self, group: Group, folder: Path) -> None:
        folder.mkdir()
        self.group = group
        self.output = folder / "output"
        # Sockets of Ray have their paths below it, which must be short.
        self._environment = {**os.environ, "RAY_TMPDIR": str(folder)}
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
        return [sys.executable, "-m", "pytest", "-o", self._cache]

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


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the groups with it
    folder = Path(tempfile.mkdtemp(prefix="ht", dir="/tmp"))
    began = time.monotonic()
    running = [Running(group, folder / str(n)) for n, group in enumerate(GROUPS)]
    try:
        while working := [one for one in running if one.process.poll() is None]:
            names = ", ".join(one.group.name for one in working)
            print(f"{time.monotonic() - began:4.0f} s: {names}", flush=True)
            with suppress(subprocess.TimeoutExpired):
                working[0].process.wait(SHOW_EACH_S)
        _tell(running)
        return verdict(running)
    finally:
        for left in running:
            left.process.terminate()
            left.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


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
