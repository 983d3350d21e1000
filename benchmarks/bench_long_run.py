"""How does the cost of a round grow with the length of a run?

Unit: milliseconds of CPU per round, counted as in `bench_round_cost`, of runs that are alone:
nothing travels in batches, and what a round costs at the least is seen.

- One run of 200 rounds, with a tool that is read-only and with one that must not run twice,
  beside a loop over `AsyncOpenAI`, which walks the conversation at every call, and beside one
  over aiohttp, near the least that Python needs, for CPU and the time on the wall.
- One run of 1,000 rounds with results of 200 bytes, beside runs of 20 rounds one after the
  other. Its tool is read-only, so that the growth is not hidden by the cost of a fence.
- One run of 1,000 rounds with results of 4 KB, beside a loop over aiohttp that joins encoded
  messages: some 2 GB are sent, and no less can be.

What would change our mind: more than 0.07 × (read-only) or 0.25 × the CPU of `AsyncOpenAI`, or
8 ms more on the wall per round than aiohttp; more than twice the CPU of a short run's round, or
of what only sends the same bytes. Then the cost follows the history and not the change.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contest import Contender, Measured, compete
from benchmarks.costs import HEADS, rows, spreads
from benchmarks.findings import Finding, ratios
from benchmarks.notes import Work

SHORT_RESULT, LONG_RESULT = 200, 4096


def contenders(options: argparse.Namespace) -> dict[str, Contender]:
    ours = options.runtime
    one = Work(conversations=1, rounds=options.rounds)
    read = replace(one, tool="look")
    long = replace(read, rounds=options.long_rounds, result_bytes=SHORT_RESULT)
    # As many rounds in all, so that the kernel's 10 ms ticks show both as well.
    runs = max(1, options.long_rounds // options.short_rounds)
    short = replace(long, conversations=runs, rounds=options.short_rounds, at_once=1)
    heavy = replace(long, result_bytes=LONG_RESULT)
    return {
        "openai": Contender(kind="openai", title="loop over AsyncOpenAI", work=one),
        "aiohttp": Contender(kind="aiohttp", title="loop over aiohttp", work=one),
        "read_only": Contender(kind=ours, title="ours, read-only", work=read),
        "effectful": Contender(kind=ours, title="ours, effectful", work=one),
        "short": Contender(kind=ours, title=f"ours, {options.short_rounds} rounds", work=short),
        "long": Contender(kind=ours, title=f"ours, {options.long_rounds} rounds", work=long),
        "sent": Contender(kind="joined", title="4 KB results, only sent", work=heavy),
        "heavy": Contender(kind=ours, title="ours, 4 KB results", work=heavy),
    }


def findings(found: Mapping[str, Sequence[Measured]], options: argparse.Namespace) -> list[Finding]:
    net = {name: [one.net_ms for one in measured] for name, measured in found.items()}
    wall = {name: [one.wall_ms for one in measured] for name, measured in found.items()}
    added = [ours - raw for ours, raw in zip(wall["effectful"], wall["aiohttp"], strict=True)]
    of, long = f"one run of {options.rounds} rounds", options.long_rounds

    def compared(name: str, other: str, question: str, at_most: float | None = None) -> Finding:
        return Finding.of(question, ratios(net[name], net[other]), at_most=at_most)

    return [
        compared("read_only", "openai", f"CPU, {of}, read-only tool, to AsyncOpenAI", 0.07),
        compared("read_only", "aiohttp", "… to aiohttp"),
        compared("effectful", "openai", "… effectful tool, to AsyncOpenAI", 0.25),
        compared("effectful", "aiohttp", "… effectful tool, to aiohttp"),
        Finding.of(
            "… added wall per round, to aiohttp", added, unit="ms", at_most=8.0, computing=True
        ),
        compared("long", "short", f"CPU per round at {long} to {options.short_rounds} rounds", 2.0),
        compared("heavy", "sent", f"CPU, {long} rounds of 4 KB, to aiohttp sending them", 2.0),
    ]


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"rounds": 200, "short_rounds": 20, "long_rounds": 1000},
        smoke={"rounds": 20, "short_rounds": 3, "long_rounds": 12},
    )
    competing = contenders(options)
    found = compete(competing, options.repeats)
    publish(
        "long_run",
        "ms CPU per round",
        options,
        findings(found, options),
        {"contenders": {name: spreads(measured) for name, measured in found.items()}},
        (HEADS, rows(competing, found)),
    )


if __name__ == "__main__":
    main()
