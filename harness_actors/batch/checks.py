"""Checks: a task's command, run in a fresh copy of the finished workspace."""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness_actors.batch.check_copy import lay
from harness_actors.batch.check_files import CheckFiles
from harness_actors.batch.check_programs import CheckPrograms
from harness_actors.batch.installed import Difference
from harness_actors.batch.outcomes import CheckResult
from harness_actors.batch.tasks import Check
from harness_actors.errors import BadInputError, HarnessError
from harness_actors.tools import copy_workspace
from harness_actors.tools.shell import run_shell
from harness_actors.tools.trees import remove_tree

OUTPUT_BYTES = 4000
COPY = "harness-check-"
"""What the names of the copies begin with: by that they are known to be ours."""

MOST_TRIES = 3
"""How often a check is made whose programs are changed meanwhile."""
CHANGED = (
    "the interpreter of checks was changed since this command began, perhaps by a run; put it "
    "right, and begin the task anew with --retry-failed"
)
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
        self._programs = CheckPrograms()
        self._files: dict[tuple[Check, str | None], CheckFiles] = {}

    async def begin(self, check: Check, source: str | None = None) -> None:
        """Note what a check will stand on, before its run can change that.

        Args:
            check: What is to be run when that is over.
            source: The folder that the workspace begins as a copy of; None for an empty one.
        """
        await self._programs.begin()
        if (check, source) not in self._files:
            self._files[check, source] = await asyncio.to_thread(_files_of, check, source)

    async def run(
        self, check: Check, workspace: Path | None, source: str | None = None
    ) -> CheckResult:
        """Score a finished workspace, which is left as it is.

        Args:
            check: What to run.
            workspace: The finished workspace; None for an empty one.
            source: As of `begin`.

        Returns:
            What the check said; one that could not be prepared, or that stood on something
            which was changed, has not passed, and its output says why.
        """
        try:
            await self.begin(check, source)
            for _ in range(MOST_TRIES):
                changed = self._programs.known
                result = await self._once(check, workspace, source, changed)
                # Only now: what was changed and put back since is seen, too.
                found = await self._programs.changes()
                if found.library:
                    return _not_checked(f"{', '.join(sorted(found.library)[:3])}: {CHANGED}")
                if found == changed:
                    return result
            return _not_checked("the programs that it runs on are changed again and again")
        except Exception as error:  # noqa: BLE001 - of this task, whatever it is
            told = isinstance(error, (OSError, HarnessError))
            return _not_checked(str(error) if told else f"{type(error).__name__}: {error}")

    async def _once(
        self, check: Check, workspace: Path | None, source: str | None, changed: Difference
    ) -> CheckResult:
        async with self._free:
            copy = await asyncio.to_thread(self._made)
            try:
                work, files = copy / "work", self._files[check, source]
                left_out = await asyncio.to_thread(_prepare, files, workspace, work)
                environment = await asyncio.to_thread(
                    self._programs.lay_out, copy / "programs", changed
                )
                result = await _scored(check, work, environment)
            finally:
                await asyncio.to_thread(remove_tree, copy)
        programs = sorted(changed.packages | changed.programs)
        return replace(result, ran_on=self._programs.python, left_out=(*left_out, *programs))

    def _made(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=COPY, dir=self._folder))


def _files_of(check: Check, source: str | None) -> CheckFiles:
    return CheckFiles(
        check.command,
        None if check.files is None else Path(check.files),
        None if source is None else Path(source),
        check.keep,
    )


def _prepare(files: CheckFiles, workspace: Path | None, work: Path) -> tuple[str, ...]:
    if workspace is None:
        work.mkdir()
    elif os.path.lexists(workspace):
        copy_workspace(workspace, work)
    else:
        raise BadInputError(str(workspace), (GONE,))
    return lay(files, work)


def _not_checked(reason: str) -> CheckResult:
    return CheckResult(passed=False, exit_code=None, seconds=0.0, output=f"not checked: {reason}")


def clear_copies(folder: Path) -> None:
    """Remove copies of checks that did not end, and their folder if nothing else is in it."""
    for copy in folder.glob(f"{COPY}*"):
        remove_tree(copy)
    with suppress(OSError):
        folder.rmdir()


async def _scored(check: Check, folder: Path, environment: Mapping[str, str]) -> CheckResult:
    started = time.monotonic()
    result = await run_shell(
        check.command,
        folder=folder,
        environment=environment,
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
