"""Do as many runs wait for their models at once as a batch is told to hold?

Unit: seconds on the wall, from the first model call to the last result on disk, beside what the
calls of one run take one after the other: 5,000 runs of 3 calls at 5 s under `harness batch
-n 5000`, so that 15 s is what nobody can be faster than. The server reports how many requests
were open at the same time, and is on the same cores.

What would change our mind: more than 1.5 ×, or fewer open requests than nine tenths of the
runs: then something waits that is not a model, and `-n` does not say what it does. What is beyond
1 × is spent computing, 15,000 rounds on two cores, so that half is stretched where the machine is
slower than that of the bars.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.contest import ROOT, SCRIPT
from benchmarks.findings import Finding
from benchmarks.measure import Spread
from benchmarks.notes import INSTRUCTIONS, MODEL, Work
from harness_actors.testing import LoopbackProcess

DEADLINE_S = 600.0
LOOK_EVERY_S = 0.05
LEAST_SHARE = 0.9
"""Of the runs: the first ones may have their answers before the last ones ask."""

AGENT = f"""\
model: {{id: {MODEL}}}
persona: {{instructions: "{INSTRUCTIONS}"}}
environment: {{tools: ["benchmarks.notes:note"]}}
harness: {{completion: answer}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One batch.

    Attributes:
        wall_s: From its first model call to its last result.
        command_s: The whole command, with the start and the end of Ray.
        peak: Requests that were open at once.
    """

    wall_s: float
    command_s: float
    peak: int


def measure(runs: int, calls: int, latency_s: float, runtime: str) -> Held:
    """Run a batch once.

    Raises:
        RuntimeError: It failed, or made other calls than it was to make.
    """
    work = Work(conversations=runs, rounds=calls - 1)
    # The server finds its script from the current folder.
    with (
        chdir(ROOT),
        tempfile.TemporaryDirectory(prefix="at-once-") as name,
        LoopbackProcess(SCRIPT, latency_s=latency_s) as server,
    ):
        command = _command(Path(name), work, server.base_url, runtime)
        began = time.monotonic()
        with subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr) as batch:
            try:
                wall_s = _followed(batch, server, Path(name), runs)
                status = batch.wait(DEADLINE_S)
            except BaseException:
                batch.kill()
                raise
        if status:
            raise RuntimeError(f"{command} ended with {status}")
        stats = server.stats()
        noted = (Path(name) / "notes").read_text().splitlines()
    found = (stats["requests"], len(noted), len(set(noted)))
    if found != (work.model_calls, work.tool_calls, work.tool_calls):
        raise RuntimeError(f"{found} are not its {work.model_calls} calls of models")
    return Held(wall_s=wall_s, command_s=time.monotonic() - began, peak=stats["peak"])


def _command(folder: Path, work: Work, base_url: str, runtime: str) -> Sequence[str]:
    """The batch, with its files in a folder."""
    agent, tasks = folder / "agent.yaml", folder / "tasks.jsonl"
    agent.write_text(AGENT)
    log = folder / "notes"
    tasks.write_text(
        "".join(
            json.dumps({"id": f"t{number}", "task": work.task(number, log)}) + "\n"
            for number in range(work.conversations)
        )
    )
    where = ("--runtime", "local") if runtime == "local" else ("--address", "local")
    return (
        *(sys.executable, "-m", "harness_actors", "batch", str(tasks), "--agent", str(agent)),
        *("--model-base-url", base_url, "--run-dir", str(folder / "run"), *where),
        *("-n", str(work.conversations)),
    )


def _followed(
    batch: "subprocess.Popen[bytes]", server: LoopbackProcess, folder: Path, runs: int
) -> float:
    """Seconds from the first model call of a batch until all its results are on disk."""
    deadline = time.monotonic() + DEADLINE_S
    first: float | None = None
    results, read_to, lines = folder / "run" / "results.jsonl", 0, 0
    while lines < runs:
        if batch.poll() is not None:
            raise RuntimeError(f"the batch ended with {batch.returncode} and {lines} results")
        if time.monotonic() > deadline:
            raise RuntimeError(f"the batch had {lines} results after {DEADLINE_S:g} s")
        if first is None:
            first = time.monotonic() if server.stats()["requests"] else None
        elif results.exists():
            with results.open("rb") as file:
                file.seek(read_to)
                more = file.read()
            read_to, lines = read_to + len(more), lines + more.count(b"\n")
        time.sleep(LOOK_EVERY_S)
    assert first is not None, "results follow from calls"
    return time.monotonic() - first


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"runs": 5000, "calls": 3, "latency_ms": 5000},
        smoke={"runs": 20, "calls": 3, "latency_ms": 100},
        repeats=3,
    )
    latency_s = options.latency_ms / 1e3
    found: list[Held] = []
    for turn in range(options.repeats):
        found.append(measure(options.runs, options.calls, latency_s, options.runtime))
        told = f"{found[-1].wall_s:.1f} s, {found[-1].peak} at once"
        print(f"  {turn + 1}/{options.repeats} {told}", file=sys.stderr, flush=True)
    of = f"-n {options.runs}: {options.calls} calls each at {latency_s:g} s"
    stretched = [one.wall_s / (options.calls * latency_s) for one in found]
    least = LEAST_SHARE * options.runs
    publish(
        "at_once",
        "wall to calls × latency",
        options,
        [
            Finding.of(f"{of}, wall to calls × latency", stretched),
            Finding.of(
                "… what it is beyond that", [s - 1 for s in stretched], at_most=0.5, computing=True
            ),
            Finding.of(
                "… model calls open at once", [o.peak for o in found], unit="", at_least=least
            ),
        ],
        {
            "wall_s": Spread.of(one.wall_s for one in found).rounded(2),
            "command_s": Spread.of(one.command_s for one in found).rounded(2),
        },
    )


if __name__ == "__main__":
    main()
