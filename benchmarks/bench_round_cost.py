"""What does a round cost in CPU, beside a hand-written loop on the same server?

A *round* is one model call and its tools. Unit: milliseconds of CPU per round, user and
system, of all processes but the model server's: of one process for the hand-written loops;
on Ray of the driver, the coordinator, the executors' hosts and all of Ray's own. Every
contender holds the same conversations, all at once, with a server on this machine that
answers at once; each round calls one tool that must not run twice. The answer that ends a
conversation is charged to its rounds. Starting and first imports are not counted. What the
same processes use in the same time without work is measured apart and taken off for `net`.

Beside the loop over `AsyncOpenAI.chat.completions.create` stand one over the same client's
`post` with joined bytes, which is how the harness asks, and one over bare aiohttp, which is
near the least that Python needs: their distance to ours is what being durable costs. With
one round per turn, each round passes all four executors, and so five commits.

What would change our mind: on Ray, with what an idle Ray uses taken off, more than 0.35 ×
the CPU of the loop over `AsyncOpenAI`, or 0.5 × with one round per turn. Then the path of a
round has to be made shorter before anything is added to it.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contend import Kind
from benchmarks.contest import Contender, Measured, compete
from benchmarks.costs import HEADS, rows, spreads
from benchmarks.findings import Finding, ratios
from benchmarks.notes import Work


def contenders(options: argparse.Namespace) -> dict[str, Contender]:
    work = Work(conversations=options.conversations, rounds=options.rounds)
    hops = replace(work, rounds_per_turn=1)
    # Ray takes seconds to start, and once is enough to see that it works.
    again: Kind = "local" if options.smoke else options.runtime
    return {
        "openai": Contender(kind="openai", title="loop over AsyncOpenAI", work=work),
        "post": Contender(kind="post", title="the same with joined bytes", work=work),
        "aiohttp": Contender(kind="aiohttp", title="loop over aiohttp", work=work),
        "ours": Contender(kind=options.runtime, title="harness_actors", work=work),
        "hops": Contender(kind=again, title="one round per turn", work=hops),
        "local": Contender(kind="local", title="harness_actors, local", work=work),
    }


def findings(found: Mapping[str, Sequence[Measured]], options: argparse.Namespace) -> list[Finding]:
    net = {name: [one.net_ms for one in measured] for name, measured in found.items()}
    of = f"CPU per round, {options.conversations} runs × {options.rounds} rounds"

    def compared(name: str, other: str, question: str, at_most: float | None = None) -> Finding:
        return Finding.of(question, ratios(net[name], net[other]), at_most=at_most)

    return [
        compared("ours", "openai", f"{of}, to a loop over AsyncOpenAI", 0.35),
        compared("hops", "openai", "… with one round per turn", 0.5),
        compared("ours", "post", "… to the same client's post"),
        compared("ours", "aiohttp", "… to a loop over aiohttp and orjson"),
        compared("hops", "aiohttp", "… with one round per turn, to aiohttp and orjson"),
        compared("local", "openai", "… in one process, to AsyncOpenAI"),
    ]


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"conversations": 50, "rounds": 10},
        smoke={"conversations": 10, "rounds": 4},
        # One smoke run on Ray, for what the others share.
        smoke_runtime="ray",
    )
    competing = contenders(options)
    found = compete(competing, options.repeats)
    publish(
        "round_cost",
        "ms CPU per round",
        options,
        findings(found, options),
        {"contenders": {name: spreads(measured) for name, measured in found.items()}},
        (HEADS, rows(competing, found)),
    )


if __name__ == "__main__":
    main()
