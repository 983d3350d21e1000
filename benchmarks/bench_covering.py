"""What does it cost a command that it does not see the workspaces of other runs?

    python benchmarks/bench_covering.py [--commands 100] [--repeats 15]

Milliseconds that one `true` costs more with a cover than without one, of wall and of CPU of its
supervisor and all below it. Both are asked in turn, so that differences are of the same moment.
Above 1 ms we would make the namespace ahead of the command. Where the machine does not let that be
done (`hidden` in the JSON line), it is the cost of the attempt.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish
from benchmarks.findings import Finding
from benchmarks.measure import Spread, machine
from harness_actors.ports import Cover
from harness_actors.tools.shell import run_shell
from harness_actors.tools.supervision.client import SupervisedProcesses
from harness_actors.tools.supervision.descendants import children
from harness_actors.tools.supervision.trial import hides_workspaces

AT_MOST_MS = 1.0
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}

Costs = tuple[float, float]
"""Milliseconds of wall and of CPU, per command."""


class Commands:
    """Commands of one run, with a supervisor of their own."""

    def __init__(self, place: str) -> None:
        top = Path(place).resolve()
        self._folder = top / "workspaces" / "own"
        self._folder.mkdir(parents=True)
        self._cover = Cover(folder=top, spared=self._folder)
        self._processes = SupervisedProcesses()
        supervisor = self._processes.supervisor()
        assert supervisor is not None
        self._supervisor = supervisor.pid

    async def cost(self, count: int, *, covered: bool) -> Costs:
        """What each of so many commands costs, one after the other."""
        cpu_ms, begun = self._cpu_ms(), time.perf_counter()
        for _ in range(count):
            await run_shell(
                "true",
                folder=self._folder,
                environment=ENVIRONMENT,
                timeout_s=60,
                processes=self._processes,
                cover=self._cover if covered else None,
            )
        wall_ms = 1e3 * (time.perf_counter() - begun)
        return wall_ms / count, (self._cpu_ms() - cpu_ms) / count

    def _cpu_ms(self) -> float:
        """Of the supervisor and of all keepers that have ended, with their commands."""
        while len(children(self._supervisor)) > 1:
            time.sleep(0.01)
        text = Path(f"/proc/{self._supervisor}/stat").read_text()
        return TICK_MS * sum(map(int, text.rpartition(")")[2].split()[11:15]))

    def close(self) -> None:
        self._processes.close()


async def measure(commands: int, repeats: int) -> dict[str, list[Costs]]:
    """The costs of commands with a cover and without, by repetition."""
    found: dict[str, list[Costs]] = {"covered": [], "plain": []}
    with TemporaryDirectory() as place:
        running = Commands(place)
        try:
            for turn in range(repeats + 1):
                for name in sorted(found, reverse=bool(turn % 2)):
                    costs = await running.cost(commands, covered=name == "covered")
                    if turn:
                        found[name].append(costs)
        finally:
            running.close()
    return found


def main() -> None:
    options = parse_arguments()
    options.machine = machine()
    hidden = asyncio.run(hides_workspaces(required=False))
    found = asyncio.run(measure(options.commands, options.repeats))
    pairs = list(zip(found["covered"], found["plain"], strict=True))
    findings = [
        Finding.of(
            f"{what} that a cover adds to a command",
            [covered[place] - plain[place] for covered, plain in pairs],
            unit="ms",
            at_most=AT_MOST_MS,
            computing=True,
        )
        for place, what in enumerate(("wall", "CPU"))
    ]
    rows = [
        (name, *(str(Spread.of([one[place] for one in costs])) for place in (0, 1)))
        for name, costs in found.items()
    ]
    heads = ("ms per command", "wall", "CPU")
    facts = {"hidden": hidden, "costs": found}
    publish("covering", "ms per command", options, findings, facts, (heads, rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commands", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.commands, options.repeats = 5, 1
    return options


if __name__ == "__main__":
    main()
