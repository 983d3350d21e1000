"""What does a process that is killed in the middle of a tool call leave to be done twice?

A model asks for three notes, one after the other. The tool writes the second and then kills
its own process with SIGKILL; a second process goes on in the way that the framework has for it,
with the most durable storage that it offers in one process. Units: how often each note was
written, and how many model calls were made again.

In the harness the process that dies is the agent's only in one process (`runtime="local"`);
`make chaos` does the same to its actors on Ray.

What would change our mind about fencing every effect behind a commit: frameworks that run no
tool twice without paying for it.

    python -m benchmarks.peers.bench_killed [--only NAMES]
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import asdict, dataclass
from pathlib import Path

# Run as a file, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.measure import machine, print_report
from benchmarks.peers.contenders import SURVIVORS, Contender, chosen
from benchmarks.peers.conversations import Work
from benchmarks.peers.environments import InstallError, python_of, versions_of
from harness_actors.testing import LoopbackProcess

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Survived:
    """What became of a conversation.

    Attributes:
        written: How often each note was, in their order.
        asked_again: Model calls beyond those of a conversation that nobody kills.
        failed: Why it did not come to its end; None where it did.
    """

    written: tuple[int, ...] = ()
    asked_again: int = 0
    failed: str | None = None


def survive(contender: Contender, server: LoopbackProcess) -> Survived:
    """Let a contender be killed, and go on."""
    try:
        python = python_of(contender.environment)
    except InstallError as error:
        return Survived(failed=f"not installed: {error}")
    with tempfile.TemporaryDirectory(prefix="bench-killed-") as folder:
        work = Work(base_url=server.base_url, folder=Path(folder), conversations=1, rounds=ROUNDS)
        command = [
            *(str(python), *contender.command),
            *("--base-url", work.base_url, "--folder", folder),
            *("--conversations", "1", "--rounds", str(ROUNDS)),
        ]
        before = server.stats()["requests"]
        for ending, what in ((-9, "was not killed"), (0, "did not go on")):
            ended = _run(command)
            if ended != ending:
                said = work.failure.read_text() if work.failure.exists() else f"ended with {ended}"
                return Survived(failed=f"{what}: {said}")
        lines = work.log.read_text().splitlines()
        again = server.stats()["requests"] - before - (ROUNDS + 1)
    written = tuple(sum(line.endswith(f"note {n}") for line in lines) for n in range(ROUNDS))
    return Survived(written=written, asked_again=again)


def _run(command: Sequence[str]) -> int | None:
    """How a command ended; None where it did not."""
    try:
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return ran.returncode


def compare(names: str | None) -> None:
    """Kill all of them, one after the other, and print what came out."""
    contenders, facts = chosen(names, SURVIVORS), machine()
    with chdir(ROOT), LoopbackProcess("benchmarks.peers.server:lenient") as server:
        found = {name: survive(contender, server) for name, contender in contenders.items()}
    line = {
        "benchmark": "killed",
        "unit": "times written; model calls",
        "machine": facts,
        "contenders": {
            name: {
                "versions": versions_of(contender.environment, contender.distributions),
                **asdict(found[name]),
            }
            for name, contender in contenders.items()
        },
    }
    rows = []
    for name, contender in contenders.items():
        came = found[name]
        cells = [*(str(times) for times in came.written), str(came.asked_again)]
        rows.append([contender.label, *(["–"] * (ROUNDS + 1) if came.failed else cells)])
    heads = ["contender", *(f"note {n}" for n in range(ROUNDS)), "model asked again"]
    print_report(line, heads, rows)
    for name, contender in contenders.items():
        if found[name].failed:
            print(f"{contender.label}: {found[name].failed}", file=sys.stderr)


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a kill leaves to be done twice.")
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(SURVIVORS)}")
    options = parser.parse_args(given)
    try:
        chosen(options.only, SURVIVORS)
    except ValueError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    compare(parse_arguments().only)
