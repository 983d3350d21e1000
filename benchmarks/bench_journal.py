"""What does the journal cost: bytes per round, commits, and looking at 10,000 runs?

Units: journal bytes per byte of message (fenced: every round has a tool that is not
idempotent, so that the call is on disk before it starts; plain: none has), commits per
second of 1 and of 100 entries on the disk at hand, milliseconds to list 10,000 ended runs
and to find the one that is not.

More than 1.5 bytes per byte of message would make us pack changes anew; a list above
0.4 s, or unfinished runs above 0.2 s, would bring an index of their own.

    python benchmarks/bench_journal.py [--smoke]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.findings import HEADS, Finding, plain, row
from benchmarks.measure import Spread, machine, print_report, versions
from benchmarks.rounds import COMMAND, Rounds, added, ended, texts
from harness_actors.records import Entry
from harness_actors.stores import SqliteJournal

ENTRIES_PER_COMMIT = 500


def bytes_per_message_byte(folder: Path, rounds: int, *, fenced: bool, text: str) -> float:
    """What a journal of one run weighs against the messages of its rounds."""
    path = folder / f"weight-{fenced}.db"
    journal = SqliteJournal(path)
    term = journal.begin_term()
    made = Rounds("run-1", fenced=fenced, text=text)
    entries: list[Entry] = [added("run-1")]
    for _ in range(rounds):
        entries += made.make()
        if len(entries) >= ENTRIES_PER_COMMIT:
            journal.commit(term, entries)
            entries = []
    journal.commit(term, entries)
    journal.close()
    return path.stat().st_size / made.message_bytes


def commits_per_second(folder: Path, commits: int, *, batch: int, text: str) -> float:
    """How many transactions of so many rounds are on disk within a second."""
    journal = SqliteJournal(folder / f"pace-{batch}-{time.monotonic_ns()}.db")
    term = journal.begin_term()
    journal.commit(term, [added("run-1")])
    made = Rounds("run-1", fenced=False, text=text)
    groups = [[entry for _ in range(batch) for entry in made.make()] for _ in range(commits)]
    start = time.perf_counter()
    for group in groups:
        journal.commit(term, group)
    took_s = time.perf_counter() - start
    journal.close()
    return commits / took_s


def with_ended_runs(path: Path, runs: int) -> SqliteJournal:
    """A journal of runs that are over, and a last one that is not."""
    journal = SqliteJournal(path)
    term = journal.begin_term()
    for first in range(0, runs, ENTRIES_PER_COMMIT):
        group: list[Entry] = []
        for number in range(first, min(first + ENTRIES_PER_COMMIT, runs)):
            group += [added(f"run-{number}"), ended(f"run-{number}", 1)]
        journal.commit(term, group)
    journal.commit(term, [added("the last")])
    return journal


def milliseconds(call: Callable[[], Any], repeats: int) -> Spread:
    """How long a call takes."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - start))
    return Spread.of(found)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    text = texts()
    journal = with_ended_runs(folder / "many.db", options.runs)
    measured = {
        "bytes_per_message_byte": {
            "fenced": round(
                bytes_per_message_byte(folder, options.rounds, fenced=True, text=text), 3
            ),
            "plain": round(
                bytes_per_message_byte(folder, options.rounds, fenced=False, text=text), 3
            ),
        },
        "commits_per_s": {
            str(batch): Spread.of(
                commits_per_second(folder, options.commits, batch=batch, text=text)
                for _ in range(options.repeats)
            ).rounded(0)
            for batch in (1, 100)
        },
        "headings_ms": milliseconds(journal.headings, options.repeats).rounded(1),
        "load_unfinished_ms": milliseconds(
            lambda: journal.load_unfinished(COMMAND), options.repeats
        ).rounded(2),
    }
    journal.close()
    return measured


def main() -> None:
    options = parse_arguments()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="journal-") as folder:
        measured = measure(options, Path(folder))
    line = {
        "benchmark": "journal",
        "unit": "bytes per byte of message; transactions per second; ms",
        "machine": facts,
        "versions": versions(),
        "n": options.repeats,
        "rounds": options.rounds,
        "runs": options.runs,
        **measured,
        "findings": plain(findings(measured, options.runs)),
    }
    print_report(line, HEADS, [row(found) for found in line["findings"]])


def findings(measured: dict[str, Any], runs: int) -> list[Finding]:
    weight, pace = measured["bytes_per_message_byte"], measured["commits_per_s"]
    listed, unfinished = measured["headings_ms"], measured["load_unfinished_ms"]
    return [
        Finding.of("journal bytes per byte of message, fenced", [weight["fenced"]], at_most=1.5),
        Finding.of("… plain", [weight["plain"]], at_most=1.5),
        Finding(question="commits per second of 1 round", figure=Spread(**pace["1"]), unit="/s"),
        Finding(question="… of 100 rounds", figure=Spread(**pace["100"]), unit="/s"),
        Finding(
            question=f"to list {runs} runs",
            figure=Spread(**listed),
            unit="ms",
            at_most=400.0,
            computing=True,
        ),
        Finding(
            question="… to find the unfinished one",
            figure=Spread(**unfinished),
            unit="ms",
            at_most=200.0,
            computing=True,
        ),
    ]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the journal costs in bytes and time.")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.runs, options.commits, options.repeats = 200, 200, 10, 1
    return options


if __name__ == "__main__":
    main()
