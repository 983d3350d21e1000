"""`harness ctl run cancel`: end runs."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told, tell
from harness_actors.cli.where import check_where
from harness_actors.errors import HarnessError
from harness_actors.printing.plain import json_line, one_line, say

if TYPE_CHECKING:
    from harness_actors.results import HarnessResult


def cancel(
    run_ids: selection.RunIdsArgument,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    address: selection.RunsRayOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """End runs, in flight or not, as cancelled by their user; what they did stays.

    With a run end all that it has begun. The one that has begun it is told, and goes on.

    Exits with 0 where all of them are over now, those that were over before included.

    Examples:

        harness ctl run cancel 3f2a

        harness ctl run cancel 3f2a 91bc --run-dir runs/one
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.control import cancel_runs, find_runs
        from harness_actors.stores.places import journals_in

        if address is not None:
            check_where("ray", address)
        found = find_runs(journals_in(run_dir, store), run_ids)
        done = True
        refused: HarnessError | None = None
        for path, named in found.items():
            try:
                ended = asyncio.run(cancel_runs(path, named, address))
            except HarnessError as error:
                if len(found) == 1:
                    raise
                # Those of other journals are cancelled nevertheless, and that is told.
                tell(error, as_json=as_json)
                refused = error
                continue
            for run_id in named:
                _print(run_id, ended, as_json=as_json)
            done = done and len(ended) == len(named)
    raise typer.Exit(ALL_DONE if done and refused is None else NOT_ALL_DONE)


def _print(run_id: str, ended: "Mapping[str, HarnessResult]", *, as_json: bool) -> None:
    result = ended.get(run_id)
    status = "running" if result is None else result.status
    reason = None if result is None else result.reason.kind
    if as_json:
        say(json_line({"run_id": run_id, "status": status, "reason": reason}))
    elif result is None:
        say(f"{one_line(run_id)}: asked to end; it is not over yet")
    else:
        say(f"{one_line(run_id)}: {status}({reason})")
