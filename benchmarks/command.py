"""What every benchmark has as a command: its sizes, and what it prints in the end."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.findings import HEADS, Finding, plain, row
from benchmarks.measure import machine, print_report, print_table, versions

DISTRIBUTIONS = ("ray", "openai", "aiohttp", "httpx2", "orjson")
"""Whose versions matter to what is compared."""


def read_options(
    description: str | None,
    *,
    sizes: Mapping[str, int],
    smoke: Mapping[str, int],
    repeats: int = 5,
    smoke_runtime: str = "local",
) -> argparse.Namespace:
    """The command line of a benchmark.

    Args:
        description: Its module's docstring, of which the first line is shown.
        sizes: Options that are whole numbers, with their values.
        smoke: What they are with `--smoke`.
        repeats: How often each contender is measured; once with `--smoke`.
        smoke_runtime: What `--smoke` runs the harness on: Ray takes seconds to start.

    Returns:
        The options, with `machine`: the machine as it was before anything was measured.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    for name, value in sizes.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--runtime", choices=("ray", "local"), default=None)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        vars(options).update(smoke)
        options.repeats = 1
    options.runtime = options.runtime or (smoke_runtime if options.smoke else "ray")
    options.machine = machine()
    return options


def publish(
    name: str,
    unit: str,
    options: argparse.Namespace,
    findings: Sequence[Finding],
    figures: Mapping[str, Any],
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
) -> None:
    """Print the JSON line, and for people what was measured and what it says.

    Args:
        name: The benchmark.
        unit: Of its figures.
        options: From `read_options`.
        findings: The answers.
        figures: What they come from.
        table: Heads and rows of the figures.
    """
    known = {"repeats", "smoke", "machine"}
    line = {
        "benchmark": name,
        "unit": unit,
        "machine": options.machine,
        "versions": versions(*DISTRIBUTIONS),
        "n": options.repeats,
        "smoke": options.smoke,
        **{key: value for key, value in vars(options).items() if key not in known},
        "findings": plain(findings),
        **figures,
    }
    if table is not None:
        print_table(*table)
    print_report(line, HEADS, [row(found) for found in line["findings"]])
