"""`summary.json`: what the tasks of a command have come to, and the command's part in it."""

import logging
from collections.abc import Mapping
from typing import Any

from harness_actors.batch.brakes import Ending
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.spending import unlisted_usage
from harness_actors.batch.tally import Tally
from harness_actors.batch.totals import Totals
from harness_actors.batch.unanswered import waiting_runs
from harness_actors.errors import StoreError
from harness_actors.records import RunHeading

NOT_KNOWN = {"unfinished": None, "unlisted": None, "waiting": None}

logger = logging.getLogger(__name__)


def sum_up(
    directory: RunDirectory, roster: Roster, tally: Tally, settings: BatchSettings, ending: Ending
) -> dict[str, Any]:
    """The summary of a run directory, as plain values.

    What is counted are the tasks of the command. Results of tasks that it does not have are
    told of as `removed`; None where the command did not come by all of its tasks, and then
    all results are counted.

    `usage` is that of all runs, whatever they were for. Those of which no line of the results
    tells are in it, and once more for themselves: `unfinished` ones, and `unlisted` ones that
    are over. Both are None, and not in it, where the journal cannot be read; nor is it known
    then which runs are `waiting` for their user.

    Raises:
        BadInputError: A line of the results is none of ours.
    """
    totals, removed = Totals(), Totals()
    for outcome in read_outcomes(directory.results_path):
        ours = not roster.is_whole or roster.has(outcome.id, outcome.task_hash)
        (totals if ours else removed).add(outcome)
    told = totals.as_mapping()
    headings = _headings(directory)
    totals.usage.include(removed.usage)
    of_journal: Mapping[str, Any] = NOT_KNOWN
    if headings is not None:
        listed = totals.run_ids | removed.run_ids
        unlisted = unlisted_usage(headings, listed, roster, directory.results.lines)
        totals.usage.include(unlisted.unfinished)
        totals.usage.include(unlisted.ended)
        of_journal = {**unlisted.as_mapping(), "waiting": waiting_runs(headings, roster)}
    return {
        "ending": ending,
        **told,
        "usage": totals.usage.as_mapping(),
        "without_result": None if tally.total is None else max(0, tally.total - totals.tasks),
        "removed": removed.as_removed() if roster.is_whole else None,
        **of_journal,
        "command": {**tally.command(), "settings": settings.as_mapping()},
    }


def _headings(directory: RunDirectory) -> list[RunHeading] | None:
    """The runs of the journal; None where it cannot be read."""
    try:
        # Of a folder that was taken away nothing is known, and not that there is no run.
        directory.check_standing()
        return directory.headings()
    except StoreError as error:
        logger.info("what unfinished runs used is not known: %s", error)
        return None
