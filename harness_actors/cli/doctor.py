"""`harness doctor`: what is missing on this machine, and how to get it."""

from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.cli.findings import Finding


def doctor(
    base_url: options.BaseUrlOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """What works here, what is missing, and how to get it.

    Exits with 0 where the essentials are there: Python, Ray and a place for the journal.

    Examples:

        harness doctor

        harness doctor --model-base-url http://127.0.0.1:8000/v1 --json
    """
    from dataclasses import asdict

    from harness_actors.cli.findings import examine

    findings = examine(base_url)
    if as_json:
        say(json_line([asdict(finding) for finding in findings]))
    else:
        _print_table(findings)
    broken = any(finding.essential and finding.state == "missing" for finding in findings)
    raise typer.Exit(NOT_ALL_DONE if broken else ALL_DONE)


def _print_table(findings: "list[Finding]") -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness_actors.printing.console import PlainConsole

    colours = {"ok": "green", "missing": "red", "note": "yellow"}
    table = Table(box=None, pad_edge=False)
    for name in ("what", "", "found", "how to get it"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        state = f"[{colours[finding.state]}]{finding.state}[/]"
        table.add_row(finding.what, state, escape(finding.found), escape(finding.fix))
    PlainConsole().print(table)
