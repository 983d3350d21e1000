"""`harness ctl run resume`: take up runs that were interrupted or put aside."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told
from harness_actors.cli.streams import show_runs
from harness_actors.cli.where import check_where
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.results import HarnessResult


def resume(
    run_ids: selection.RunIdsArgument,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Take up runs with the agent and settings that they have, and show them to their ends.

    Keys are looked up in the environment by the names that the runs know. A batch is
    resumed by its own command instead, which writes its results too. A run whose workspace is
    gone is refused, and so is a cut one whose conversation another run has continued.

    Examples:

        harness ctl run resume 3f2a

        harness ctl run resume 3f2a 91bc --runtime local --json

        harness ctl run resume 3f2a -v --debug
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.control import check_keys, find_runs
        from harness_actors.stores.places import journals_in
        from harness_actors.stores.taking_up import check_taking_up

        check_where(runtime, address)
        found = find_runs(journals_in(run_dir, store), run_ids)
        for path, named in found.items():
            check_keys(path, named)
            check_taking_up(path, named)
        ended: dict[str, HarnessResult] = {}
        for path, named in found.items():
            lines = EventLines(quiet=as_json, debug=debug)
            taken_up = _resume(path, named, runtime, address, lines, verbose=verbose)
            ended.update(asyncio.run(taken_up))
        asked = [run_id for named in found.values() for run_id in named]
        for run_id in asked:
            if run_id in ended:
                _print(ended[run_id], alone=len(asked) == 1, as_json=as_json)
    if len(ended) < len(asked):
        raise typer.Exit(INTERRUPTED)
    done = all(result.status == "done" for result in ended.values())
    raise typer.Exit(ALL_DONE if done else NOT_ALL_DONE)


async def _resume(
    store: Path,
    run_ids: list[str],
    runtime: options.RuntimeChoice,
    address: str | None,
    lines: EventLines,
    *,
    verbose: bool,
) -> "dict[str, HarnessResult]":
    from harness_actors.actors.driver.following import follow
    from harness_actors.actors.driver.open_cells import close_cell, open_cell
    from harness_actors.cli.ctl.control import ended_among, keys_of

    ended = ended_among(store, run_ids)
    _tell_over(ended, lines)
    waiting = [run_id for run_id in run_ids if run_id not in ended]
    if not waiting:
        return ended
    if runtime is options.RuntimeChoice.ray:
        lines.note("starting the actors on Ray")
    cell = await open_cell(store, runtime.value, address)
    try:
        # In a cell that outlived its command, they may have ended by themselves.
        cursor = await cell.position()
        since = await asyncio.to_thread(ended_among, store, waiting)
        _tell_over(since, lines)
        ended |= since
        waiting = [run_id for run_id in run_ids if run_id not in ended]
        if not waiting:
            return ended
        # The budget of a batch is no matter of those who take up runs one by one.
        await cell.allow(None)
        begin = partial(cell.resume, waiting, secrets=keys_of(store, waiting))
        async with aclosing(follow(cell, waiting, begin, cursor)) as stream:
            return {
                **ended,
                **await show_runs(stream, cell, waiting, lines, store=store, verbose=verbose),
            }
    finally:
        await close_cell(store, runtime.value)


def _tell_over(ended: "Mapping[str, HarnessResult]", lines: EventLines) -> None:
    for run_id, result in ended.items():
        lines.note(f"run {run_id} was over: {result.status}({result.reason.kind})")


def _print(result: "HarnessResult", *, alone: bool, as_json: bool) -> None:
    from harness_actors.results import encode_result

    if as_json:
        say(json_line(encode_result(result)))
    elif not alone:
        told = f"{result.run_id}: {result.status}({result.reason.kind}) {result.output_text}"
        say(told.rstrip())
    elif result.output_text.strip():
        say(result.output_text)
