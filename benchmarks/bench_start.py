"""How long does `harness run` take until it asks its model, and what does the import cost?

Unit: seconds from the start of the process until the first request reaches a model server on
this machine; of the import, seconds that `import harness_actors` takes in a fresh interpreter.
Three cases, each as a user meets it: no Ray is up, and the command starts one; a Ray is up, and
the command starts its cell on it; the cell of an earlier command is up, and serves this one.
With `--runtime local`, as with `--smoke`, the one without Ray in their place.

What would change our mind: medians of more than 12 s, 6 s, 1.5 s and 0.15 s on 2 cores with no
other work. Most of it is CPU of processes that start, so a machine that has other work is slower
by as much; `load` says what it had, and the CPU of each command is printed beside its time.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from benchmarks.measure import Spread
from harness_actors.testing import LoopbackServer, Reply
from tests.chaos.rays import RayByHand

ENDS_WITHIN_S = 120.0
BARS_S = {"not_up": 12.0, "ray_up": 6.0, "cell_up": 1.5, "local": None}
QUESTIONS = {
    "not_up": "harness run to its first model call, Ray not up",
    "ray_up": "… Ray up",
    "cell_up": "… cell up",
    "local": "harness run --runtime local to its first model call",
}
TIMED_IMPORT = (
    "import time; began = time.perf_counter(); import harness_actors; "
    "print(time.perf_counter() - began)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One command: seconds to its first model call, and CPU seconds of its own process."""

    first_call_s: float
    cpu_s: float


class Asked:
    """A model that ends each run at once, and remembers when it was asked first."""

    def __init__(self) -> None:
        self.at: float | None = None

    def reply(self, _body: object) -> Reply:
        if self.at is None:
            self.at = time.monotonic()
        return Reply.call("work_complete", {"summary": "done"})


async def one_start(variables: Mapping[str, str], home: Path, *more: str) -> Start:
    """Give the command once.

    Raises:
        RuntimeError: It failed; says what it said.
    """
    asked = Asked()
    async with LoopbackServer(asked.reply) as server:
        flags = ("--model", "loopback", "--model-base-url", server.base_url, "--json")
        before = os.times()
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "harness_actors",
                "run",
                "say that you are done",
                *flags,
                *more,
            ),
            env={**os.environ, **variables, "HARNESS_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(ENDS_WITHIN_S):
                _, error = await process.communicate()
        finally:
            if process.returncode is None:
                # With a Ray of its own, which ends with it.
                process.kill()
        after = os.times()
    if process.returncode != 0 or asked.at is None:
        raise RuntimeError(f"harness run ended with {process.returncode}: {error.decode()}")
    cpu_s = after.children_user + after.children_system
    cpu_s -= before.children_user + before.children_system
    return Start(first_call_s=asked.at - began, cpu_s=cpu_s)


async def not_up(home: Path, repeats: int) -> list[Start]:
    """No Ray is up: each command starts one."""
    with tempfile.TemporaryDirectory(prefix="hs") as own:
        variables = {"RAY_TMPDIR": own, "RAY_ADDRESS": ""}
        return [await one_start(variables, home) for _ in range(repeats)]


async def ray_up(home: Path, repeats: int) -> list[Start]:
    """A Ray is up: each command starts a cell on it, which ends with the command."""
    async with RayByHand() as ray:
        variables = {**ray.variables, "HARNESS_CELL_IDLE_S": "0"}
        return [await one_start(variables, home) for _ in range(repeats)]


async def cell_up(home: Path, repeats: int) -> list[Start]:
    """The cell of an earlier command is up; that command is not counted."""
    async with RayByHand() as ray:
        starts = [await one_start(ray.variables, home) for _ in range(repeats + 1)]
        return starts[1:]


async def local(home: Path, repeats: int) -> list[Start]:
    """Without Ray, in the process of the command."""
    return [await one_start({}, home, "--runtime", "local") for _ in range(repeats)]


CASES: Mapping[str, Callable[[Path, int], Awaitable[list[Start]]]] = {
    "not_up": not_up,
    "ray_up": ray_up,
    "cell_up": cell_up,
    "local": local,
}


def import_s() -> float:
    """Seconds that the import takes; of an interpreter that has its files in memory."""
    ran = subprocess.run(
        [sys.executable, "-c", TIMED_IMPORT], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(ran.stdout)


def main() -> None:
    options = read_options(__doc__, sizes={}, smoke={})
    cases = ["local"] if options.runtime == "local" else ["not_up", "ray_up", "cell_up"]
    import_s()
    imports = [import_s() for _ in range(options.repeats)]
    found: dict[str, list[Start]] = {}
    for name in cases:
        with tempfile.TemporaryDirectory(prefix="start-") as home:
            found[name] = asyncio.run(_case(name, Path(home), options.repeats))
    findings = [
        Finding.of(
            QUESTIONS[name],
            [start.first_call_s for start in starts],
            unit="s",
            at_most=BARS_S[name],
            computing=True,
        )
        for name, starts in found.items()
    ]
    findings.append(
        Finding.of("import harness_actors", imports, unit="s", at_most=0.15, computing=True)
    )
    cpu = {name: Spread.of(start.cpu_s for start in starts) for name, starts in found.items()}
    publish(
        "start",
        "s from the start of the command to its first model call",
        options,
        findings,
        {"command_cpu_s": {name: spread.rounded() for name, spread in cpu.items()}},
        (
            ("command", "CPU s until its end, without Ray's processes"),
            [(QUESTIONS[name], str(spread)) for name, spread in cpu.items()],
        ),
    )


async def _case(name: str, home: Path, repeats: int) -> list[Start]:
    return await CASES[name](home, repeats)


if __name__ == "__main__":
    main()
