"""`harness ctl cell stop`: stop cells that are up."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.cli.ctl.cells import CellReport, Mode, Stopped
    from harness_actors.errors import CellError


def stop(
    target: Annotated[
        Path | None,
        typer.Argument(metavar="[STORE|RUN_DIR]", help="The journal or run directory it serves."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All cells of this HARNESS_HOME that can be reached.")
    ] = False,
    park: Annotated[
        bool, typer.Option("--park", help="Put aside what is in progress, each after its round.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Cut what is in progress; it can be taken up again.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --all: also those of others, and on several Rays.")
    ] = False,
    address: selection.CellsRayOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Stop cells, and see their processes gone; without a flag only those without runs.

    --all leaves cells alone that a command with another HARNESS_HOME started, unless with --yes.
    A cell that does not answer is killed. Nothing committed is lost, and the next command
    starts another. Exits with 0 where all of them are gone, 1 where one was left as it is, and
    2 where none serves the STORE that is named.

    Examples:

        harness ctl cell stop runs/one

        harness ctl cell stop --all --park

        harness ctl cell stop --all --address 10.0.0.1:6379
    """
    with failures_told(as_json=as_json):
        from harness_actors.errors import BadInputError

        if (target is None) is not every:
            raise BadInputError("STORE", ("name a journal or a run directory, or --all",))
        if park and force:
            raise BadInputError("--park", ("give --park or --force, not both",))
        mode: Mode | None = "force" if force else "park" if park else None
        done = asyncio.run(_stop(target, mode, address, sure=yes))
        if not done and target is not None:
            problem = f"no cell serves {str(target)!r}; `harness ctl cell list` shows those up"
            raise BadInputError("STORE", (problem,))
        for one in done:
            _print(one, as_json=as_json)
        if not done and not as_json:
            say("nothing to stop")
    raise typer.Exit(NOT_ALL_DONE if any(one.problem for one in done) else ALL_DONE)


async def _stop(
    target: Path | None, mode: "Mode | None", address: str | None, *, sure: bool
) -> "list[Stopped]":
    from harness_actors.cli.ctl.cells import reports, stop_cell, store_named

    unreachable: list[CellError] = []
    store = None if target is None else store_named(target)
    done: list[Stopped] = []
    others: dict[str, str] = {}
    asks = store is None and not sure and address in (None, "auto")
    for ray in await _sole_ray(unreachable, others) if asks else [address]:
        async for some in reports(ray, unreachable):
            wanted = [report for report in some if store in (None, report.cell.store)]
            if store is None and not sure:
                wanted = _ours(wanted, others)
            done += await asyncio.gather(*(stop_cell(report, mode) for report in wanted))
    for error in unreachable:
        say(f"left out: {error}", sys.stderr)
    for left, home in others.items():
        whose = f"a command with HARNESS_HOME={home} started it" if home else "it does not answer"
        say(f"left out: {left}: {whose}; --yes stops it, too", sys.stderr)
    return done


async def _sole_ray(unreachable: "list[CellError]", others: dict[str, str]) -> list[str]:
    """The Ray that all of our cells are on; empty where there is none.

    Args:
        unreachable: Gets why a Ray is left out.
        others: See `_ours`.

    Raises:
        BadInputError: They are on several, which may be those of others.
    """
    from harness_actors.cli.ctl.cells import reports
    from harness_actors.errors import BadInputError

    stores: dict[str, list[str]] = {}
    async for some in reports(None, unreachable):
        for report in _ours(some, others):
            stores.setdefault(report.address, []).append(str(report.cell.store))
    if len(stores) > 1:
        where = "; ".join(f"{ray}: {', '.join(served)}" for ray, served in sorted(stores.items()))
        problem = f"cells on {len(stores)} Rays would be stopped ({where})"
        raise BadInputError("--all", (f"{problem}; add --yes, or name one Ray by --address",))
    return list(stores)


def _ours(found: "list[CellReport]", others: dict[str, str]) -> "list[CellReport]":
    """The cells that --all means.

    One that does not answer cannot say whose it is: its journal must be in this HARNESS_HOME.

    Args:
        found: Those of one Ray.
        others: Gets the stores of those that it does not mean, with the HARNESS_HOME of each.
    """
    from harness_actors.stores.home import home

    here, ours = home().resolve(), []
    for report in found:
        theirs = "" if report.facts is None else report.facts.home
        if theirs == str(here) or (not theirs and report.cell.store.parent == here):
            ours.append(report)
        else:
            others[str(report.cell.store)] = theirs
    return ours


def _print(one: "Stopped", *, as_json: bool) -> None:
    if as_json:
        facts = {"store": one.store, "pid": one.pid, "stopped": not one.problem}
        say(json_line({**facts, "problem": one.problem}))
    elif one.problem:
        say(f"{one.store}: left as it is: {one.problem}")
    else:
        say(f"{one.store}: stopped")
