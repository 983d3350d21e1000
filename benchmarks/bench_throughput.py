"""How many rounds does a machine do in a second, and does a thousand waiting runs slow it down?

Units: rounds per second of all conversations together, with a server that answers at once;
and with one that takes 2 s, the time on the wall of 1,000 runs in units of what the answers of
one of them take one after the other. The server is on the same cores: `server` is the share of
one that it took, and a loop over aiohttp beside ours shows what it can serve.

What would change our mind: less than 3 × the rounds per second of a loop over `AsyncOpenAI`,
which has one core at most; or more than 1.3 × the latency. Then agents would wait for the
harness and not for their models.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contest import Contender, Measured, compete
from benchmarks.costs import HEADS, rows, spreads
from benchmarks.findings import Finding, ratios
from benchmarks.notes import Work


def contenders(options: argparse.Namespace) -> dict[str, Contender]:
    ours, latency_s = options.runtime, options.latency_ms / 1e3
    busy = Work(conversations=options.conversations, rounds=options.rounds)
    # The answer that ends a conversation is waited for, too: it is the last of the calls.
    calm = Work(conversations=options.waiting, rounds=options.rounds - 1)
    return {
        "openai": Contender(kind="openai", title="loop over AsyncOpenAI", work=busy),
        "aiohttp": Contender(kind="aiohttp", title="loop over aiohttp", work=busy),
        "ours": Contender(kind=ours, title="harness_actors", work=busy),
        "raw_waiting": Contender(
            kind="aiohttp", title="aiohttp, with latency", work=calm, latency_s=latency_s
        ),
        "waiting": Contender(kind=ours, title="ours, with latency", work=calm, latency_s=latency_s),
    }


def findings(found: Mapping[str, Sequence[Measured]], options: argparse.Namespace) -> list[Finding]:
    pace = {name: [one.rounds_per_s for one in measured] for name, measured in found.items()}
    least_s = options.rounds * options.latency_ms / 1e3
    of = f"{options.conversations} runs × {options.rounds} rounds"
    slow = f"{options.waiting} runs × {options.rounds} rounds at {options.latency_ms / 1e3:g} s"

    def stretched(name: str) -> list[float]:
        return [one.window.wall_s / least_s for one in found[name]]

    return [
        Finding.of(
            f"rounds per second, {of}, to AsyncOpenAI",
            ratios(pace["ours"], pace["openai"]),
            at_least=3.0,
        ),
        Finding.of("… to aiohttp", ratios(pace["ours"], pace["aiohttp"])),
        Finding.of("… rounds per second", pace["ours"], unit="/s"),
        Finding.of(f"{slow}, wall to calls × latency", stretched("waiting"), at_most=1.3),
        Finding.of("… of a loop over aiohttp", stretched("raw_waiting")),
    ]


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"conversations": 200, "rounds": 10, "waiting": 1000, "latency_ms": 2000},
        smoke={"conversations": 20, "rounds": 3, "waiting": 20, "latency_ms": 50},
    )
    competing = contenders(options)
    found = compete(competing, options.repeats)
    publish(
        "throughput",
        "rounds per second; wall to calls × latency",
        options,
        findings(found, options),
        {"contenders": {name: spreads(measured) for name, measured in found.items()}},
        (HEADS, rows(competing, found)),
    )


if __name__ == "__main__":
    main()
