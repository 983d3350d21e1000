"""Runs the benchmarks one after the other, and prints one table of what they answer.

    python -m benchmarks [--only NAME] [--smoke] [--json] [--record FILE] [-- OPTIONS]

Each runs as a command of its own; what it says while it works goes to standard error. It ends
with 1 where a benchmark failed, or a bar was not met.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Also where it is run as a file.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.findings import HEADS, row
from benchmarks.measure import aligned

FOLDER = Path(__file__).resolve().parent
PREFIX = "bench_"
REPORTED = ("benchmark", "machine", "versions", "n")
"""What the JSON line of every benchmark has."""


def names() -> list[str]:
    """All benchmarks there are."""
    return sorted(path.stem.removeprefix(PREFIX) for path in FOLDER.glob(f"{PREFIX}*.py"))


def run(name: str, options: Sequence[str]) -> Mapping[str, Any] | None:
    """What a benchmark reports; None where it failed, and said so on standard error."""
    command = [sys.executable, str(FOLDER / f"{PREFIX}{name}.py"), *options]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = ran.stdout.splitlines()
    if ran.returncode or not lines:
        print(f"{name} failed with {ran.returncode}", file=sys.stderr)
        return None
    report: Mapping[str, Any] = json.loads(lines[-1])
    if missing := [field for field in REPORTED if field not in report]:
        print(f"{name} does not report {', '.join(missing)}", file=sys.stderr)
        return None
    return report


def table(
    reports: Mapping[str, Mapping[str, Any] | None], *, judged: bool
) -> list[tuple[str, ...]]:
    """A row for each answer, below a head for each benchmark's first."""
    rows: list[tuple[str, ...]] = []
    for name, report in reports.items():
        if report is None:
            rows.append((name, "it failed", "", "", "NO"))
            continue
        answers = report.get("findings") or []
        if not answers:
            rows.append((name, "no question in its report; see --json", "", "", ""))
        for place, found in enumerate(answers):
            *cells, met = row(found)
            rows.append(("" if place else name, *cells, met if judged else ""))
    return rows


def is_well(report: Mapping[str, Any] | None, *, judged: bool) -> bool:
    """It ran, and no bar was missed."""
    if report is None:
        return False
    answers = report.get("findings") or []
    return not judged or all(found.get("met") is not False for found in answers)


def main() -> int:
    options = parse_arguments()
    passed = [*(["--smoke"] if options.smoke else []), *options.options]
    reports: dict[str, Mapping[str, Any] | None] = {}
    for place, name in enumerate(options.only or names(), 1):
        told = f"[{place}/{len(options.only or names())}] {name}"
        print(told, file=sys.stderr, flush=True)
        began = time.monotonic()
        reports[name] = run(name, passed)
        print(f"{told}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if options.json:
            print(json.dumps(reports[name]), flush=True)
        if options.record is not None:
            with options.record.open("a") as file:
                file.write(json.dumps(reports[name]) + "\n")
    judged = not options.smoke
    if not options.json:
        print(aligned(("benchmark", *HEADS), table(reports, judged=judged)))
        if not judged:
            print("A smoke run: at its sizes, no figure says anything of a bar.")
    return 0 if all(is_well(report, judged=judged) for report in reports.values()) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run the benchmarks and print what they answer."
    )
    parser.add_argument(
        "--only", action="append", choices=names(), metavar="NAME", help=", ".join(names())
    )
    parser.add_argument("--smoke", action="store_true", help="once and small: do they run?")
    parser.add_argument("--json", action="store_true", help="their JSON lines, and no table")
    parser.add_argument("--record", type=Path, help="add their JSON lines to a file")
    parser.add_argument("options", nargs="*", help="after `--`, for each benchmark that is run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
