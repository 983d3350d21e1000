"""What does one more gate cost for each call of a tool?

    python benchmarks/bench_gates.py [--rounds 40] [--calls 8] [--repeats 7]

Milliseconds of CPU per call beyond those of the same run without gates, in one process: a hook that
allows, an `async` one and one that blocks and so runs in a thread; a hook after the call; and one
middleware. Each run has 40 rounds of 8 calls that only read, and the runs take turns, so that
differences are of the same moment. Above 0.1 ms for the `async` hook before a call we would ask
all calls of a message in one go.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish
from benchmarks.findings import Finding
from benchmarks.measure import Spread, machine
from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.policies import AfterTool, Allow, BeforeTool, Hooks
from harness_actors.policies.middleware import NextTool, ToolInvocation
from harness_actors.testing import Reply, ScriptedModel

AT_MOST_MS = 0.1


@tool(effect="read_only", volatile=True)
async def look(number: int) -> str:
    """Look at something."""
    return f"seen {number}"


async def allows(event: BeforeTool) -> Allow:
    return Allow()


def allows_blocking(event: BeforeTool) -> Allow:
    return Allow()


async def hears(event: AfterTool) -> None:
    return None


async def passes(call: ToolInvocation, next: NextTool) -> str:
    return await next(call)


GATES: Mapping[str, Mapping[str, Any]] = {
    "no gate": {},
    "a hook that allows": {"hooks": Hooks(pre_tool=allows)},
    "two hooks that allow": {"hooks": Hooks(pre_tool=[allows, allows])},
    "a blocking hook that allows": {"hooks": Hooks(pre_tool=allows_blocking)},
    "a hook after the call": {"hooks": Hooks(post_tool=hears)},
    "middleware": {"middleware": [passes]},
}


def cpu_s(gates: Mapping[str, Any], rounds: int, calls: int) -> float:
    """CPU of one run, in seconds."""
    asked = [
        Reply.calls([("look", {"number": n}) for n in range(at * calls, (at + 1) * calls)])
        for at in range(rounds)
    ]
    model = ScriptedModel([*asked, Reply.text("done")])
    agent = ChatAgent(model=model, tools=[look], **gates)

    async def run(store: Path) -> float:
        async with AgentHarness(
            agent, runtime="local", store=store, completion="answer", max_rounds_per_turn=rounds + 1
        ) as harness:
            begun = time.process_time()
            result = await harness.run("look")
            assert result.status == "done", result.reason
            return time.process_time() - begun

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder) / "runs.db"))


def measure(rounds: int, calls: int, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of CPU per call, by gate; of the first, all that a call costs."""
    found: dict[str, list[float]] = {name: [] for name in GATES}
    for turn in range(repeats + 1):
        costs = {name: cpu_s(gates, rounds, calls) for name, gates in GATES.items()}
        if turn:  # the first loads what the others have loaded
            for name, cost in costs.items():
                beyond = cost - (costs["no gate"] if name != "no gate" else 0.0)
                found[name].append(1e3 * beyond / (rounds * calls))
    return found


def main() -> None:
    options = parse_arguments()
    options.machine = machine()
    found = measure(options.rounds, options.calls, options.repeats)
    findings = [
        Finding.of(
            f"{name}, a call" if name == "no gate" else f"{name}, beyond that",
            values,
            unit="ms",
            at_most=AT_MOST_MS if name == "a hook that allows" else None,
            computing=True,
        )
        for name, values in found.items()
    ]
    rows = [(name, str(Spread.of(values))) for name, values in found.items()]
    heads = ("ms of CPU per call", "")
    publish("gates", "ms of CPU per call", options, findings, {"gates": found}, (heads, rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.calls, options.repeats = 3, 2, 1
    return options


if __name__ == "__main__":
    main()
