"""`harness ctl store`: what journals forget, and how their files become smaller."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.stores.expiry import Cleared


def expire(
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    days: Annotated[
        float | None,
        typer.Option(
            "--days",
            metavar="N",
            min=0.0,
            help="Remove what ended longer ago; by default $HARNESS_KEEP_DAYS, or 30.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Remove runs that ended long ago; those that are parked or unfinished stay.

    So does the newest conversation of a journal, whatever its age. What removed runs cost is
    spent all the same: a batch's --budget counts it.

    The journals in $HARNESS_HOME are looked through once a day without being asked, those of
    run directories never. $HARNESS_KEEP_DAYS=0 keeps everything.

    Examples:

        harness ctl store expire

        harness ctl store expire --run-dir runs/one --days 90
    """
    with failures_told(as_json=as_json):
        from harness_actors.stores.expiry import expire
        from harness_actors.stores.home import SECONDS_PER_DAY, days_kept
        from harness_actors.stores.places import journals_in

        journals = journals_in(run_dir, store)
        kept = days if days is not None else days_kept() or float("inf")
        before = time.time() - kept * SECONDS_PER_DAY
        done = _clear(journals, lambda path: expire(path, ended_before=before), as_json=as_json)
    raise typer.Exit(ALL_DONE if done else NOT_ALL_DONE)


def compact(
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Make the files of journals as small as they can be; no run is removed.

    Needs room for a second copy of the file while it works.

    Examples:

        harness ctl store compact --run-dir runs/one
    """
    with failures_told(as_json=as_json):
        from harness_actors.stores.expiry import compact
        from harness_actors.stores.places import journals_in

        done = _clear(journals_in(run_dir, store), compact, as_json=as_json)
    raise typer.Exit(ALL_DONE if done else NOT_ALL_DONE)


def _clear(journals: Sequence[Path], clear: "Callable[[Path], Cleared]", *, as_json: bool) -> bool:
    """Clear each journal and tell of it; whether none was left out."""
    from harness_actors.actors.retiring import make_way
    from harness_actors.errors import StoreError

    rows: list[dict[str, str | int]] = []
    busy: list[StoreError] = []
    for path in journals:
        try:
            # A warm cell would be in the way for minutes, and knows what is to be removed.
            asyncio.run(make_way(path))
            cleared = clear(path)
        except StoreError as error:
            busy.append(error)
            continue
        rows.append(
            {
                "store": str(path),
                "runs": cleared.runs,
                "code": cleared.code,
                "freed_bytes": cleared.freed_bytes,
            }
        )
    for held in busy:
        say(f"left out: {held}", sys.stderr)
    if as_json:
        say(json_line(rows))
        return not busy
    for row in rows:
        say(
            f"{row['store']}: {row['runs']} runs and {row['code']} programs removed, "
            f"{int(row['freed_bytes']) / 1e6:.1f} MB freed"
        )
    if not journals:
        say("no journals")
    return not busy
