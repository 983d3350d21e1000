"""What does it cost to read an answer while the model says it, through Ray and a terminal?

Units: milliseconds of CPU per 1,000 tokens, user and system, of all processes but the model
server's; and milliseconds until the first token is there. The server sends each token by
itself, as fast as it can and at a pace; in front of the first it takes as long as a quick
provider does. Beside a loop over `AsyncOpenAI.chat.completions.create(stream=True)` stand
`run_stream` on a warm cell on Ray, counted from the call, and `harness run` on a terminal,
counted from when its model is asked. What the same processes use idle is shown apart, and
taken off for `net`. 300 ms of every first token are the server's, the client's as well as
ours, and bring their ratio nearer to 1; so what we add to them is told in milliseconds, too.

What would change our mind: more than 1.3 × the client's own, in either. Then text would have
to go from the agent turn to its readers in larger pieces, or in fewer steps.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding, ratios
from benchmarks.measure import Spread
from benchmarks.streamed import Reading
from benchmarks.windows import Window, measure_windows
from harness_actors.testing import LoopbackProcess

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_S = 600.0
WAYS = {
    "client": "loop over AsyncOpenAI's stream",
    "run_stream": "run_stream",
    "command": "harness run on a terminal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One repetition of one way to read.

    Attributes:
        cpu_ms: CPU per 1,000 tokens.
        idle_ms: What the same processes use in the same time without work.
        first_ms: Until the first token, the server's own time included; the middle of its answers.
    """

    cpu_ms: float
    idle_ms: float
    first_ms: float

    @property
    def net_ms(self) -> float:
        return self.cpu_ms - self.idle_ms


def measure(way: str, options: argparse.Namespace, base_url: str) -> Measured:
    """Let a process read in that way.

    Raises:
        RuntimeError: It failed, or did not get the whole answer.
    """
    # The command starts a Ray for each, which takes long.
    answers = 1 if way == "command" else options.answers
    with tempfile.TemporaryDirectory(prefix="streaming-") as folder:
        reading = Reading(
            base_url=base_url,
            folder=Path(folder),
            tokens=options.tokens,
            answers=answers,
            # Ray takes seconds to start, and in a smoke run that of the command is enough.
            runtime="local" if options.smoke else options.runtime,
            idle_s=1.0 if options.smoke else 10.0,
        )
        command = [sys.executable, "-m", "benchmarks.streamed", way, reading.as_json()]
        windows = measure_windows(command, cwd=ROOT, deadline_s=DEADLINE_S)
        firsts = json.loads((Path(folder) / "firsts").read_text())
    work, idle = _both(windows, "work"), _both(windows, "idle")
    per_1000 = 1e6 / (options.tokens * answers)
    idle_share = idle.cpu_s / idle.wall_s if idle.wall_s else 0.0
    return Measured(
        cpu_ms=work.cpu_s * per_1000,
        idle_ms=idle_share * work.wall_s * per_1000,
        first_ms=1e3 * Spread.of(firsts).median,
    )


def _both(windows: Mapping[str, Window], name: str) -> Window:
    """All windows of a name together."""
    found = [one for key, one in windows.items() if key.startswith(name)]
    return Window(
        wall_s=sum(one.wall_s for one in found),
        cpu_s=sum(one.cpu_s for one in found),
        processes=max((one.processes for one in found), default=0),
    )


def compare(options: argparse.Namespace) -> dict[str, dict[str, list[Measured]]]:
    """Measure all ways in turn at each pace, as often as asked: by pace, then by way."""
    found: dict[str, dict[str, list[Measured]]] = {}
    ways = [way for way in WAYS if way != "command" or options.runtime == "ray"]
    paces = {"as fast as it can": 0.0}
    if not options.smoke:
        paces[f"{options.pace} tokens/s"] = 1 / options.pace
    for pace, piece_s in paces.items():
        found[pace] = {way: [] for way in ways}
        with (
            chdir(ROOT),
            LoopbackProcess(
                "benchmarks.streamed:script",
                latency_s=options.first_ms / 1e3,
                piece_s=piece_s,
            ) as server,
        ):
            for turn in range(options.repeats):
                for way in ways:
                    measured = measure(way, options, server.base_url)
                    found[pace][way].append(measured)
                    told = f"{measured.net_ms:.0f} ms CPU, first in {measured.first_ms:.0f} ms"
                    print(f"  {turn + 1}/{options.repeats} {pace}, {way}: {told}", file=sys.stderr)
    return found


def findings(
    found: Mapping[str, Mapping[str, Sequence[Measured]]], server_ms: int
) -> list[Finding]:
    """The answers; of both first tokens `server_ms` are the server's."""
    answers = []
    for pace, by_way in found.items():
        client = by_way["client"]
        for way in (way for way in by_way if way != "client"):
            ours = by_way[way]
            cpu = ratios([one.net_ms for one in ours], [one.net_ms for one in client])
            first = ratios([one.first_ms for one in ours], [one.first_ms for one in client])
            title = f"{WAYS[way]}, {pace}"
            later = [o.first_ms - c.first_ms for o, c in zip(ours, client, strict=True)]
            answers += [
                Finding.of(f"CPU per token, {title}, to the client", cpu, at_most=1.3),
                Finding.of(
                    f"… first token, {server_ms} ms of either the server's, to the client",
                    first,
                    at_most=1.3,
                ),
                Finding.of("… first token, added to the client's", later, unit="ms"),
            ]
    return answers


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"tokens": 1000, "answers": 3, "pace": 100, "first_ms": 300},
        smoke={"tokens": 100, "answers": 1, "first_ms": 20},
        smoke_runtime="ray",
    )
    found = compare(options)
    heads = ("pace", "way", "ms CPU/1,000 tokens", "idle", "net", "first token, ms")
    rows = [
        (
            *(pace, WAYS[way], str(Spread.of(one.cpu_ms for one in measured))),
            f"{Spread.of(one.idle_ms for one in measured).median:.0f}",
            str(Spread.of(one.net_ms for one in measured)),
            str(Spread.of(one.first_ms for one in measured)),
        )
        for pace, by_way in found.items()
        for way, measured in by_way.items()
    ]
    figures = {
        pace: {
            way: {
                "cpu_ms": Spread.of(one.cpu_ms for one in measured).rounded(),
                "idle_cpu_ms": Spread.of(one.idle_ms for one in measured).rounded(),
                "net_cpu_ms": Spread.of(one.net_ms for one in measured).rounded(),
                "first_token_ms": Spread.of(one.first_ms for one in measured).rounded(),
            }
            for way, measured in by_way.items()
        }
        for pace, by_way in found.items()
    }
    unit = "ms CPU per 1,000 tokens; ms to the first"
    answers = findings(found, options.first_ms)
    publish("streaming", unit, options, answers, {"paces": figures}, (heads, rows))


if __name__ == "__main__":
    main()
