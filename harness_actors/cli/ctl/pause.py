"""`harness ctl run pause`: put runs aside."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told, tell
from harness_actors.cli.where import check_where
from harness_actors.errors import HarnessError
from harness_actors.printing.plain import json_line, one_line, say

if TYPE_CHECKING:
    from harness_actors.records import RunHeading


def pause(
    run_ids: selection.RunIdsArgument,
    now: Annotated[bool, typer.Option("--now", help="Cut the round in progress.")] = False,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    address: selection.RunsRayOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Put runs aside that are in progress, each after its round; `resume` goes on with them.

    One that waits for its user, or that nobody works on, is aside already. With a run that
    another one has begun, the whole tree is put aside in which it stands.

    Exits with 0 where none of them is in progress any more.

    Examples:

        harness ctl run pause 3f2a

        harness ctl run pause 3f2a 91bc --run-dir runs/one --now
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.control import find_runs, pause_runs
        from harness_actors.cli.ctl.facts import is_served
        from harness_actors.stores.places import journals_in

        if address is not None:
            check_where("ray", address)
        found = find_runs(journals_in(run_dir, store), run_ids)
        done = True
        for path, named in found.items():
            try:
                headings, served = asyncio.run(pause_runs(path, named, address, now=now))
            except HarnessError as error:
                if len(found) == 1:
                    raise
                # Those of other journals are put aside nevertheless, and that is told.
                tell(error, as_json=as_json)
                done = False
                continue
            # Its cell may have gone meanwhile.
            at_work = served if is_served(path) else frozenset()
            for run_id in named:
                heading = headings[run_id]
                word = _print(heading, served=run_id in at_work, as_json=as_json)
                done = done and word != "running"
                if heading.root and heading.end is None and not as_json:
                    say(f"  with the whole tree of {one_line(heading.root)}, which has begun it")
    raise typer.Exit(ALL_DONE if done else NOT_ALL_DONE)


def _print(heading: "RunHeading", *, served: bool, as_json: bool) -> str:
    from harness_actors.cli.ctl.facts import word_of

    word = word_of(heading, served=served)
    if as_json:
        root = {"root": heading.root} if heading.root else {}
        say(json_line({"run_id": heading.run_id, "status": word, **root}))
    elif heading.end is not None:
        say(f"{one_line(heading.run_id)}: was over: {word}({heading.end.reason.kind})")
    elif word == "running":
        say(f"{one_line(heading.run_id)}: asked to stop after its round; it is in progress still")
    else:
        say(f"{one_line(heading.run_id)}: {word}")
    return word
