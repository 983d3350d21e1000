"""`harness ctl cell list`: which cells are up."""

import asyncio
import sys
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.cli.ctl.cells import CellReport
    from harness_actors.errors import CellError


def list_cells(
    address: selection.CellsRayOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Cells: the processes that serve the runs of a journal, on the Rays that can be reached.

    Under a Ray that was there before, a cell outlives its command, serves the next one warm,
    and stops when it has had no run in progress for $HARNESS_CELL_IDLE_S seconds (300; 0: it
    stops with its command), or before where more than $HARNESS_WARM_CELLS (1) newer ones are
    warm on its node, or the node is short of memory; one that serves runs, or whose journal a
    command works on, stays. Under a Ray that a command started, it ends with that.

    A cell is `serving` runs or a command, `warm`, `broken` where it cannot go on, as when
    its journal cannot be written (it leaves by itself, and the same command resumes when the
    cause is gone), or `silent` where it does not answer.

    Examples:

        harness ctl cell list

        harness ctl cell list --address 10.0.0.1:6379 --json
    """
    with failures_told(as_json=as_json):
        found, unreachable = asyncio.run(_found(address))
        for error in unreachable:
            say(f"left out: {error}", sys.stderr)
        if as_json:
            say(json_line([report.as_json() for report in found]))
        else:
            _print_table(found)
    raise typer.Exit(ALL_DONE)


async def _found(address: str | None) -> "tuple[list[CellReport], list[CellError]]":
    from harness_actors.cli.ctl.cells import reports

    unreachable: list[CellError] = []
    found = [report async for some in reports(address, unreachable) for report in some]
    return found, unreachable


def _print_table(found: "list[CellReport]") -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness_actors.printing.console import print_table

    table = Table(box=None, pad_edge=False)
    for name in ("status", "pid"):
        table.add_column(name, no_wrap=True)
    for name in ("runs", "held", "term", "idle", "stops in", "processes", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("version", "Ray", "node", "store"):
        table.add_column(name, no_wrap=True)
    for report in found:
        table.add_row(report.status, str(report.cell.pid), *map(escape, _cells(report)))
    print_table(table if found else "no cells are up", wide=250)


def _cells(report: "CellReport") -> list[str]:
    facts, store = report.facts, str(report.cell.store)
    if facts is None:
        return [*"????????", report.address, "?", store]
    stops = "with its command" if facts.stops_in_s is None else f"{facts.stops_in_s:.0f} s"
    return [
        str(len(facts.in_progress)),
        str(facts.held),
        str(facts.term),
        f"{facts.idle_for_s:.0f} s" if not facts.in_progress else "",
        stops if not facts.in_progress else "",
        str(len(facts.processes)),
        "?" if facts.memory_mb is None else f"{facts.memory_mb:.0f} MB",
        facts.version,
        report.address,
        facts.host,
        store,
    ]
