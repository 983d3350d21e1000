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
near the least that Python needs: their distance to ours is what being durable costs.

What would change our mind: on Ray, with what an idle Ray uses taken off, more than twice
the CPU of the loop over `AsyncOpenAI`. Then a machine would serve fewer agents for being
durable, and the path of a round has to be made shorter before anything is added to it.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.hand_written import run_aiohttp, run_openai, run_post
from benchmarks.harnessed import run_harness
from benchmarks.measure import Spread, machine, print_report, versions
from benchmarks.notes import Work
from benchmarks.windows import Window, measure_windows
from harness_actors.actors import RuntimeKind
from harness_actors.testing import LoopbackProcess

ROOT = Path(__file__).resolve().parents[1]

CONTENDERS = {
    "openai": "loop over AsyncOpenAI",
    "post": "the same with joined bytes",
    "aiohttp": "loop over aiohttp",
    "ray": "harness_actors on Ray",
    "local": "harness_actors, local",
}
COMPARED = (("ray", "openai"), ("ray", "post"), ("ray", "aiohttp"), ("local", "openai"))
WARM_UP_CONVERSATIONS, WARM_UP_ROUNDS = 10, 2
DEADLINE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One repetition of one contender."""

    work: Window
    idle_cpu_s: float
    """CPU of the same processes in the same time without work; 0 where there is nothing."""
    requests: int
    """What the server counted, warm-up included."""
    notes: int
    """Different lines of the tool's log."""
    lines: int
    """All lines of the tool's log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a contender's repetitions come to, per round.

    Attributes:
        gross_ms: CPU.
        idle_ms: CPU of the same processes in the same time without work.
        net_ms: The difference.
        rounds_per_s: Pace of all conversations together.
        last: The last repetition, for its counts.
    """

    gross_ms: Spread
    idle_ms: Spread
    net_ms: Spread
    rounds_per_s: Spread
    last: Measured

    @classmethod
    def of(cls, found: Sequence[Measured], rounds: int) -> "Cost":
        return cls(
            gross_ms=Spread.of(1e3 * one.work.cpu_s / rounds for one in found),
            idle_ms=Spread.of(1e3 * one.idle_cpu_s / rounds for one in found),
            net_ms=Spread.of(1e3 * (one.work.cpu_s - one.idle_cpu_s) / rounds for one in found),
            rounds_per_s=Spread.of(rounds / one.work.wall_s for one in found),
            last=found[-1],
        )

    def as_plain(self) -> dict[str, Any]:
        return {
            "cpu_ms": self.gross_ms.rounded(),
            "idle_cpu_ms": self.idle_ms.rounded(),
            "net_cpu_ms": self.net_ms.rounded(),
            "rounds_per_s": self.rounds_per_s.rounded(1),
            "processes": self.last.work.processes,
            "requests_with_warm_up": self.last.requests,
            "tool_calls": self.last.lines,
        }


def measure(name: str, server: LoopbackProcess, options: argparse.Namespace) -> Measured:
    """Let a contender do the work once, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="round-cost-") as folder:
        work = _work(server.base_url, folder, options)
        command = [
            *(sys.executable, str(Path(__file__).resolve()), "--contender", name),
            *("--base-url", server.base_url, "--folder", folder),
            *("--conversations", str(options.conversations), "--rounds", str(options.rounds)),
        ]
        before = server.stats()["requests"]
        windows = measure_windows(command, cwd=ROOT, deadline_s=DEADLINE_S)
        requests = server.stats()["requests"] - before
        lines = work.log.read_text().splitlines()
    idle = windows.get("idle")
    return Measured(
        work=windows["work"],
        idle_cpu_s=0.0 if idle is None else idle.cpu_s,
        requests=requests,
        notes=len(set(lines)),
        lines=len(lines),
    )


def contend(options: argparse.Namespace) -> None:
    """Be one of the contenders: the process that is measured."""
    work = _work(options.base_url, options.folder, options)
    warm_up = Work(
        base_url=work.base_url,
        folder=work.folder,
        conversations=WARM_UP_CONVERSATIONS,
        rounds=WARM_UP_ROUNDS,
    )
    match options.contender:
        case "openai":
            asyncio.run(run_openai(work, warm_up))
        case "post":
            asyncio.run(run_post(work, warm_up))
        case "aiohttp":
            asyncio.run(run_aiohttp(work, warm_up))
        case kind:
            asyncio.run(run_harness(cast(RuntimeKind, kind), work, warm_up))


def _work(base_url: str, folder: str, options: argparse.Namespace) -> Work:
    return Work(
        base_url=base_url,
        folder=Path(folder),
        conversations=options.conversations,
        rounds=options.rounds,
    )


def check(name: str, measured: Measured, options: argparse.Namespace) -> None:
    """Refuse a measurement of anything but the work.

    Raises:
        RuntimeError: A request or a tool call is missing, or one was made twice.
    """
    calls = options.conversations * options.rounds
    asked = calls + options.conversations + WARM_UP_CONVERSATIONS * (WARM_UP_ROUNDS + 1)
    found = (measured.requests, measured.lines, measured.notes)
    if found != (asked, calls, calls):
        raise RuntimeError(
            f"{name!r} made {found[0]} requests and {found[1]} tool calls, {found[2]} of them "
            f"different; expected {asked} and {calls}"
        )


def compare(options: argparse.Namespace) -> None:
    """Measure all contenders in turn, as often as asked, and print what came out."""
    facts = machine()
    measured: dict[str, list[Measured]] = {name: [] for name in CONTENDERS}
    # The server finds its script from the current folder.
    with chdir(ROOT), LoopbackProcess("benchmarks.notes:script") as server:
        for turn in range(options.repeats):
            for name in CONTENDERS:
                found = measure(name, server, options)
                check(name, found, options)
                measured[name].append(found)
                cost = 1e3 * found.work.cpu_s / (options.conversations * options.rounds)
                print(f"{turn + 1}/{options.repeats} {name}: {cost:.2f} ms", file=sys.stderr)
    report(facts, measured, options)


def report(
    facts: Mapping[str, Any],
    measured: Mapping[str, Sequence[Measured]],
    options: argparse.Namespace,
) -> None:
    """Print the medians and what they come to."""
    rounds = options.conversations * options.rounds
    costs = {name: Cost.of(found, rounds) for name, found in measured.items()}
    net = {name: cost.net_ms.median for name, cost in costs.items()}
    line = {
        "benchmark": "round_cost",
        "unit": "ms CPU per round",
        "machine": facts,
        "versions": versions("ray", "openai", "aiohttp"),
        "n": options.repeats,
        "conversations": options.conversations,
        "rounds": options.rounds,
        "contenders": {name: cost.as_plain() for name, cost in costs.items()},
        "ratios_of_net": {f"{a}/{b}": ratio(net[a], net[b]) for a, b in COMPARED},
    }
    heads = ("contender", "ms CPU/round", "idle", "net", "rounds/s", "× AsyncOpenAI")
    rows = [
        (
            *(CONTENDERS[name], str(cost.gross_ms), f"{cost.idle_ms.median:.2f}"),
            *(str(cost.net_ms), f"{cost.rounds_per_s.median:.0f}"),
            str(ratio(cost.net_ms.median, net["openai"])),
        )
        for name, cost in costs.items()
    ]
    print_report(line, heads, rows)


def ratio(cost: float, other: float) -> float | None:
    """One cost in units of another; None where that is less than the kernel's 10 ms ticks show."""
    return round(cost / other, 2) if other > 0 else None


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU per round, beside hand-written loops.")
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    for hidden in ("--contender", "--base-url", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.smoke:
        options.conversations, options.rounds, options.repeats = 20, 10, 1
    return options


if __name__ == "__main__":
    given = parse_arguments()
    if given.contender:
        contend(given)
    else:
        compare(given)
