"""`harness ctl run list`: the runs of the journals here."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, one_line, say

if TYPE_CHECKING:
    from harness_actors.cli.ctl.facts import RunFacts
    from harness_actors.records import RunHeading


def list_runs(
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="WORD",
            help="Only running, interrupted, parked, waiting, ended, or an ending such as failed.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="The newest so many; 0 for all.", min=0)
    ] = 50,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="Also the runs that these have begun, each below its parent."),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Runs with where they stand, the newest last.

    Examples:

        harness ctl run list

        harness ctl run list --run-dir runs/one --status interrupted --json

        harness ctl run list --tree

        harness ctl run list --status waiting --limit 0 --json | jq '.[].questions'
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.facts import facts_of_runs
        from harness_actors.stores.places import journals_in

        found, broken = facts_of_runs(
            journals_in(run_dir, store), status=status, limit=limit, tree=tree
        )
        if broken and (run_dir is not None or store is not None):
            raise broken[0]
        for error in broken:
            say(f"left out: {error}", sys.stderr)
        if as_json:
            say(json_line([facts.as_json() for facts in found]))
        else:
            _print_table(found)
    raise typer.Exit(ALL_DONE)


ID_CHARS = 40
"""Of a run's id; ours have fewer."""


def _print_table(found: "list[RunFacts]") -> None:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from harness_actors.batch.words import dollars
    from harness_actors.cli.ctl.facts import numbers_of
    from harness_actors.printing.console import print_table

    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for name in ("turns", "rounds", "tokens", "cost", "age"):
        table.add_column(name, justify="right", no_wrap=True)
    asks = any(facts.heading.questions for facts in found)
    if asks:
        table.add_column("asks", justify="right", no_wrap=True)
    # The only column that gives way where there is too little room.
    table.add_column("what")
    now = time.time()
    for facts in found:
        usage = facts.usage
        table.add_row(
            Text("  " * len(numbers_of(facts.heading)) + _cut(one_line(facts.heading.run_id))),
            f"[{_COLOURS.get(facts.word, 'yellow')}]{escape(facts.status)}[/]",
            str(facts.heading.turns),
            str(facts.heading.rounds),
            f"{usage.tokens:,}",
            dollars(usage.cost_usd),
            age(now - facts.heading.added_at),
            *([_open(facts.heading)] if asks else []),
            Text(one_line(facts.what), overflow="ellipsis", no_wrap=True),
        )
    print_table(table if found else "no runs", wide=200)


def _open(heading: "RunHeading") -> str:
    """How many of its questions are open."""
    number = len(heading.questions)
    still_open = sum(asked["answer"] is None for asked in heading.questions)
    return f"{still_open} of {number}" if number else ""


def _cut(run_id: str) -> str:
    return run_id if len(run_id) <= ID_CHARS else run_id[: ID_CHARS - 1] + "…"


_COLOURS: dict[str, Any] = {"running": "cyan", "done": "green", "failed": "red"}


def age(seconds: float) -> str:
    """How long ago, in its largest unit.

    >>> age(75), age(7200), age(200_000)
    ('1 min', '2 h', '2 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
