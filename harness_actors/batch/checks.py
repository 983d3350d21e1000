"""Checks: a task's command, run in a fresh copy of the finished workspace."""

import asyncio
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from harness_actors.batch.outcomes import CheckResult
from harness_actors.batch.tasks import Check
from harness_actors.errors import BadInputError, HarnessError
from harness_actors.tools import copy_workspace
from harness_actors.tools.environment import command_environment
from harness_actors.tools.shell import run_shell

OUTPUT_BYTES = 4000
COPY = "harness-check-"
"""What the names of the copies begin with: by that they are known to be ours."""

GONE = (
    "the folder was removed or moved away that the run worked in; put it back and remove the "
    "task's line, or --retry-failed begins the task anew"
)


class Checks:
    """Runs checks, no more at once than there are cores.

    Args:
        folder: Where the copies are made; each is removed when its check is over.
        at_once: How many run at once; None takes the cores this process may use.
    """

    def __init__(self, folder: Path, *, at_once: int | None = None) -> None:
        self._folder = folder
        self._free = asyncio.Semaphore(at_once or len(os.sched_getaffinity(0)))

    async def run(self, check: Check, workspace: Path | None) -> CheckResult:
        """Score a finished workspace, which is left as it is.

        Args:
            check: What to run.
            workspace: The finished workspace; None for an empty one.

        Returns:
            What the check said; one that could not be prepared has not passed, and its
            output says why.
        """
        async with self._free:
            try:
                copy = await asyncio.to_thread(self._prepare, check, workspace)
                try:
                    return await _scored(check, copy / "work")
                finally:
                    await asyncio.to_thread(shutil.rmtree, copy, True)
            except (OSError, HarnessError) as error:
                return CheckResult(
                    passed=False, exit_code=None, seconds=0.0, output=f"not checked: {error}"
                )

    def _prepare(self, check: Check, workspace: Path | None) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        copy = Path(tempfile.mkdtemp(prefix=COPY, dir=self._folder))
        work = copy / "work"
        try:
            if workspace is None:
                work.mkdir()
            elif workspace.is_dir():
                copy_workspace(workspace, work)
            else:
                raise BadInputError(str(workspace), (GONE,))
            if check.files is not None:
                lay_over(Path(check.files), work)
        except BaseException:
            shutil.rmtree(copy, ignore_errors=True)
            raise
        return copy


def clear_copies(folder: Path) -> None:
    """Remove copies of checks that did not end, and their folder if nothing else is in it."""
    for copy in folder.glob(f"{COPY}*"):
        shutil.rmtree(copy, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


async def _scored(check: Check, folder: Path) -> CheckResult:
    started = time.monotonic()
    result = await run_shell(
        check.command,
        folder=folder,
        environment=command_environment(folder, {}),
        timeout_s=check.timeout_s,
        output_bytes=OUTPUT_BYTES,
    )
    output = result.output.strip()
    if result.timed_out:
        output = f"{output}\n[killed after {check.timeout_s:g} s]".strip()
    return CheckResult(
        passed=result.exit_code == 0,
        exit_code=result.exit_code,
        seconds=round(time.monotonic() - started, 3),
        output=output,
    )


def lay_over(source: Path, target: Path) -> None:
    """Copy the content of a folder into another; what is in the way is replaced.

    The target was written by an agent: a link in it must not lead the copy elsewhere.
    """
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.is_dir() and not entry.is_symlink():
            if place.is_symlink() or not place.is_dir():
                place.unlink(missing_ok=True)
                place.mkdir()
            lay_over(entry, place)
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        shutil.copy2(entry, place, follow_symlinks=False)
