"""`harness ctl run compact`: have the conversation of a run summarized."""

import asyncio
from typing import Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.cli.where import check_where
from harness_actors.printing.plain import json_line, one_line, say

NOT_SERVED = (
    "nothing is summarized: nobody works on it, or its settings have no `compaction.summaries`"
)


def compact(
    run_id: selection.RunIdArgument,
    keep: Annotated[
        str, typer.Argument(help="What is to be kept, in your own words.", metavar="KEEP")
    ] = "",
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    address: selection.RunsRayOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Have what a run no longer needs to see summarized now, however full its window is.

    It goes on meanwhile, and is shown the summary before its next model call after that.

    Exits with 0 where a summary will be made.

    Examples:

        harness ctl run compact 3f2a

        harness ctl run compact 3f2a "the file names, and why we chose SQLite"
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.control import compact_run, find_runs
        from harness_actors.stores.places import journals_in

        if address is not None:
            check_where("ray", address)
        ((path, (named,)),) = find_runs(journals_in(run_dir, store), [run_id]).items()
        will_be = asyncio.run(compact_run(path, named, address, keep))
        if as_json:
            say(json_line({"run_id": named, "compacts": will_be}))
        else:
            words = "it is being summarized; the run goes on meanwhile" if will_be else NOT_SERVED
            say(f"{one_line(named)}: {words}")
    raise typer.Exit(ALL_DONE if will_be else NOT_ALL_DONE)
