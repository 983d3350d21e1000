"""Scores finished runs by the checks of their tasks, and says how many that are."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness_actors.batch.checks import Checks
from harness_actors.batch.outcomes import CheckResult
from harness_actors.batch.tally import Tally
from harness_actors.batch.tasks import Task
from harness_actors.errors import HarnessError
from harness_actors.results import HarnessResult

UNSCORED = ("failed", "cancelled")
"""Endings whose workspace was left in the middle of something: there is nothing to score."""


class Scoring:
    """The checks of a batch.

    Args:
        checks: Runs them.
        tally: Told how many are at work, those included that wait for a free core.
    """

    def __init__(self, checks: Checks, tally: Tally) -> None:
        self._checks = checks
        self._tally = tally
        self._at_work: set[asyncio.Task[Any]] = set()

    async def begin(self, task: Task, source: str | None) -> None:
        """Note what the check of a task will stand on, before its run can change that.

        Args:
            task: The task.
            source: The folder that its workspace begins as a copy of; None for an empty one.
        """
        if task.check is not None:
            # What cannot be looked at is told by the check itself, as that task's outcome.
            with suppress(OSError, HarnessError):
                await self._checks.begin(task.check, source)

    async def score(
        self, task: Task, result: HarnessResult, folder: Path | None, source: str | None
    ) -> CheckResult | None:
        """What the check of a task says of its run.

        Args:
            task: The task.
            result: How its run ended.
            folder: The workspace of the run; None where it has none.
            source: As of `begin`.

        Returns:
            None where the task has no check, or there is nothing to score.
        """
        scoring = asyncio.current_task()
        if task.check is None or result.status in UNSCORED or scoring is None:
            return None
        self._at_work.add(scoring)
        self._tally.begin_check()
        try:
            is_made = folder is not None and _has_made(folder, result)
            return await self._checks.run(task.check, folder if is_made else None, source)
        finally:
            self._tally.checking -= 1
            self._at_work.discard(scoring)

    def cut(self) -> None:
        """Cancel those at work; the next command finds their runs ended, and scores them."""
        for scoring in self._at_work:
            scoring.cancel()


def _has_made(folder: Path, result: HarnessResult) -> bool:
    """Whether there was a workspace: a run that ended before it began has made none."""
    return bool(result.turn_count or result.usage.model_calls) or folder.exists()
