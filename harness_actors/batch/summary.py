"""`summary.json`: what a run directory has come to, and the last command's part in it."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from harness_actors.batch.brakes import Ending
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.spending import Unlisted, unlisted_usage
from harness_actors.batch.tally import Totals
from harness_actors.errors import StoreError

NOT_KNOWN = {"unfinished": None, "unlisted": None}

logger = logging.getLogger(__name__)


def sum_up(
    directory: RunDirectory, *, ending: Ending, command: Mapping[str, Any]
) -> dict[str, Any]:
    """The summary of a run directory, as plain values.

    `usage` is that of all runs. Those of which no line of the results tells are in it, and
    once more for themselves: `unfinished` ones, and `unlisted` ones that are over. Both are
    None, and not in it, where the journal cannot be read.

    Raises:
        BadInputError: A line of the results is none of ours.
    """
    totals = Totals(read_outcomes(directory.results_path))
    unlisted = _unlisted(directory, totals.run_ids)
    if unlisted is not None:
        totals.usage.include(unlisted.unfinished)
        totals.usage.include(unlisted.ended)
    return {
        "ending": ending,
        **totals.as_mapping(),
        **(NOT_KNOWN if unlisted is None else unlisted.as_mapping()),
        "command": dict(command),
    }


def _unlisted(directory: RunDirectory, listed: Collection[str]) -> Unlisted | None:
    try:
        journal = directory.journal()
        return Unlisted() if journal is None else unlisted_usage(journal, listed)
    except StoreError as error:
        logger.info("what unfinished runs used is not known: %s", error)
        return None
