"""A copy of the project that a bug is planted into, and commands that run in it."""

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness_actors.tools.processes import end_carriers
from tests.planted_bugs.bug import Bug

ROOT = Path(__file__).parents[2]
VARIABLE = "HARNESS_PLANTED_TREE"
"""Environment variable of all that is started in a copy: some bugs leave processes behind."""
LEFT_OUT = shutil.ignore_patterns(
    # The last are what a process beside this one compiles just now, and are gone when it has.
    *(".venv", ".git", ".hypothesis", ".*_cache", "runs", "build", "dist", "*.pyc.*")
)


class WrongTreeError(Exception):
    """What runs in a copy would import another tree; nothing that it says is true of the copy."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a command.

    Attributes:
        status: Its exit status; None where it ran out of time.
        output: What it printed.
    """

    status: int | None
    output: str


class Tree:
    """A copy of the project; whatever is started in it imports it.

    Args:
        folder: Where the copy is, or is to be; whoever made it removes it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        # First on the path: also for Ray's workers and for commands that tests start.
        self._mark = secrets.token_hex(8)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(self.path),
            VARIABLE: self._mark,
        }

    @classmethod
    def copied(cls, folder: Path, bug: Bug | None = None) -> Self:
        """A copy in a folder of its own, with a bug in it if one is given.

        Raises:
            NotPlantableError: The code of the bug is not in its file once.
            WrongTreeError: The copy is not what would be imported.
        """
        tree = cls(folder)
        # Compiled modules come along; the planted one is newer than its own.
        shutil.copytree(ROOT, tree.path, ignore=LEFT_OUT)
        if bug is not None:
            file = tree.path / bug.path
            file.write_text(bug.planted(file.read_text("utf-8")), "utf-8")
        tree.check()
        return tree

    def check(self) -> None:
        """Make sure that the copy is what is imported, in a process that is started in it.

        Raises:
            WrongTreeError: It is not.
        """
        said = self.run(["-c", "import harness_actors; print(harness_actors.__file__)"], 60.0)
        expected = self.path / "harness_actors" / "__init__.py"
        if said.output.strip() != str(expected):
            raise WrongTreeError(f"imports {said.output.strip()!r}, not {str(expected)!r}")

    def run(self, arguments: Sequence[str], limit_s: float) -> Ran:
        """Run Python in the copy, for so many seconds at most; what it leaves is ended."""
        try:
            return self._run(arguments, limit_s)
        finally:
            asyncio.run(end_carriers(VARIABLE, {self._mark}))

    def _run(self, arguments: Sequence[str], limit_s: float) -> Ran:
        # Not a pipe, whose end would wait for whatever was left behind.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            with subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.path,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                try:
                    status: int | None = process.wait(limit_s)
                except subprocess.TimeoutExpired:
                    status = None
                finally:
                    if process.returncode is None:
                        os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            return Ran(status, output.read())
