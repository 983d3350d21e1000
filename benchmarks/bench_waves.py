"""What do calls that run at once take, on the wall and in CPU?

Unit: milliseconds on the wall between a message of 64 read-only calls of 50 ms each and the next
request, which has all their results: of async tools, and of blocking ones, which share the 32
threads of an agent turn and so cannot be faster than 100 ms. And milliseconds of CPU per round of
8 read-only calls, of all processes but the model server's, net of what the same processes use
idle, beside a loop over `AsyncOpenAI` with `asyncio.gather`.

What would change our mind: more than 150 ms (async) or 300 ms (blocking), or more than 0.4 × the
CPU of that loop. Then what a wave adds to its calls has to be made less.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contest import Contender, Measured, compete
from benchmarks.costs import HEADS, rows, spreads
from benchmarks.findings import Finding, ratios
from benchmarks.measure import Spread
from benchmarks.naps import NAPS, wall_ms
from benchmarks.notes import Work

BARS_MS = {"async": 150.0, "blocking": 300.0}


def contenders(options: argparse.Namespace) -> dict[str, Contender]:
    work = Work(
        conversations=options.conversations, rounds=options.rounds, tool="look", calls=options.calls
    )
    return {
        "openai": Contender(kind="openai", title="AsyncOpenAI and gather", work=work),
        "ours": Contender(kind=options.runtime, title="harness_actors", work=work),
    }


async def naps(options: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds that a message of waiting calls took, by the kind of its tool."""
    with tempfile.TemporaryDirectory(prefix="waves-") as folder:
        return {
            kind: await wall_ms(
                Path(folder), options.runtime, kind, options.at_once, options.repeats
            )
            for kind in NAPS
        }


def findings(
    waited: Mapping[str, Sequence[float]],
    found: Mapping[str, Sequence[Measured]],
    options: argparse.Namespace,
) -> list[Finding]:
    net = {name: [one.net_ms for one in measured] for name, measured in found.items()}
    of = f"CPU per round of {options.calls} read-only calls"
    work = f"{options.conversations} runs × {options.rounds} rounds"
    return [
        *(
            Finding.of(
                f"{options.at_once} read-only calls of 50 ms in one message, {kind}",
                figures,
                unit="ms",
                at_most=BARS_MS[kind],
                computing=True,
            )
            for kind, figures in waited.items()
        ),
        Finding.of(
            f"{of}, {work}, to AsyncOpenAI and gather",
            ratios(net["ours"], net["openai"]),
            at_most=0.4,
        ),
    ]


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"at_once": 64, "conversations": 50, "rounds": 10, "calls": 8},
        smoke={"at_once": 8, "conversations": 5, "rounds": 2, "calls": 3},
    )
    waited = asyncio.run(naps(options))
    competing = contenders(options)
    found = compete(competing, options.repeats)
    publish(
        "waves",
        "ms on the wall, and ms CPU per round",
        options,
        findings(waited, found, options),
        {
            "wall_ms": {kind: Spread.of(each).rounded(1) for kind, each in waited.items()},
            "contenders": {name: spreads(measured) for name, measured in found.items()},
        },
        (HEADS, rows(competing, found)),
    )


if __name__ == "__main__":
    main()
