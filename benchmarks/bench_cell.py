"""What does a cell do in a second, and are two cells on one machine faster than one?

Units: messages that the coordinator gets and sends per second, in how many calls; its share of
a core; commits of the journal per second, and changes per commit. Coordinators of this benchmark
count; otherwise they are the shipped ones. Two cells share the conversations of one, under one
Ray, each with a journal and an agent turn of its own.

What would change our mind: a coordinator that takes most of a core while the agent turn waits,
or two cells that do much more than one: then a node should have several.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contend import Kind
from benchmarks.contest import Contender, Measured, compete
from benchmarks.costs import HEADS, rows, spreads
from benchmarks.findings import Finding
from benchmarks.measure import Spread
from benchmarks.notes import Work


def contenders(options: argparse.Namespace) -> dict[str, Contender]:
    kind: Kind = "counted-local" if options.runtime == "local" else "counted-ray"
    work = Work(conversations=options.conversations, rounds=options.rounds)
    # Ray takes seconds to start, and once is enough to see that it works.
    first: Kind = "counted-local" if options.smoke else kind
    return {
        "one": Contender(kind=first, title="one cell", work=work),
        "two": Contender(kind=kind, title="two cells", work=replace(work, cells=2)),
    }


def rates(measured: Measured) -> dict[str, float]:
    """What all cells of a repetition did, per second and in each go."""
    total = {name: sum(counted[name] for counted in measured.counts) for name in measured.counts[0]}
    wall_s = measured.window.wall_s
    messages = total["received"] + total["posted"]
    return {
        "messages_per_s": messages / wall_s,
        "messages_per_round": messages / measured.rounds,
        "received_per_call": total["received"] / total["batches"],
        "commits_per_s": total["commits"] / wall_s,
        "changes_per_commit": total["entries"] / total["commits"],
        # Of all coordinators; in one process with everything else there is no telling.
        "coordinator_share": measured.cpu_by_role.get("coordinator", 0.0) / wall_s,
        "rounds_per_s": measured.rounds_per_s,
    }


def findings(found: Mapping[str, Sequence[dict[str, float]]]) -> list[Finding]:
    def of(question: str, name: str, unit: str) -> Finding:
        return Finding.of(question, [one[name] for one in found["one"]], unit=unit)

    pairs = zip(found["two"], found["one"], strict=True)
    gain = [two["rounds_per_s"] / one["rounds_per_s"] for two, one in pairs]
    return [
        of("coordinator messages per second", "messages_per_s", "/s"),
        of("… messages per round", "messages_per_round", ""),
        of("… received per call", "received_per_call", ""),
        of("… share of a core", "coordinator_share", "cores"),
        of("journal commits per second", "commits_per_s", "/s"),
        of("… changes per commit", "changes_per_commit", ""),
        Finding.of("rounds per second, two cells to one", gain),
    ]


def spread_of(found: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {name: Spread.of(one[name] for one in found).rounded() for name in found[0]}


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"conversations": 100, "rounds": 20},
        smoke={"conversations": 10, "rounds": 3},
        smoke_runtime="ray",
    )
    competing = contenders(options)
    measured = compete(competing, options.repeats)
    found = {name: [rates(one) for one in each] for name, each in measured.items()}
    publish(
        "cell",
        "per second of all conversations together",
        options,
        findings(found),
        {
            "cells": {name: spread_of(each) for name, each in found.items()},
            "contenders": {name: spreads(each) for name, each in measured.items()},
        },
        (HEADS, rows(competing, measured)),
    )


if __name__ == "__main__":
    main()
