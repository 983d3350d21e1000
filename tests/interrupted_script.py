"""A script of a user's own, for Ctrl-C to be pressed in.

    python -m tests.interrupted_script WAY RUNTIME FOLDER

Its agent calls `hold` some times, each time until a file is there, and completes. WAY is how the
script uses the harness, one of `WAYS`, or ``resume RUN_ID``.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from harness_actors import AgentHarness, ChatAgent, run_batch, tool
from harness_actors.messages import Message
from harness_actors.testing import Reply, ScriptedModel

WAYS = ("run", "gathered", "run_stream", "run_batch")
ROUNDS = 5
RUNS = 2
"""In flight at once, of those ways that have several."""


@tool
async def hold(folder: str) -> str:
    """Write a line, and wait until the file `released` is there.

    Args:
        folder: Where both are.
    """
    with (Path(folder) / "log").open("a") as log:
        log.write("held\n")
        line = log.tell()
    while not (Path(folder) / "released").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    # Else a run that is held often would be one that repeats itself.
    return f"was held, up to {line}"


def agent_of(folder: Path) -> ChatAgent:
    path = str(folder)

    def script(messages: Sequence[Message]) -> Reply:
        if sum(message.role == "assistant" for message in messages) < ROUNDS:
            return Reply.call("hold", {"folder": path})
        return Reply.call("work_complete", {"summary": "held"})

    return ChatAgent(model=ScriptedModel(script), tools=[hold])


def place(runtime: str) -> dict[str, Any]:
    """Where runs run; ``joined`` is the Ray of the environment."""
    return {
        "runtime": "local" if runtime == "local" else "ray",
        "address": "local" if runtime == "ray" else None,
    }


def harness_of(folder: Path, runtime: str) -> AgentHarness:
    return AgentHarness(agent_of(folder), **place(runtime), store=folder / "run" / "runs.db")


async def stream(folder: Path, runtime: str) -> None:
    async with aclosing(harness_of(folder, runtime).run_stream("go")) as items:
        async for item in items:
            print(item)


async def batch(folder: Path, runtime: str) -> None:
    outcomes = run_batch(
        [f"task {number}" for number in range(RUNS + 2)],
        agent_of(folder),
        run_dir=folder / "run",
        concurrency=RUNS,
        **place(runtime),
    )
    async for outcome in outcomes:
        print(outcome.status)


async def gathered(folder: Path, runtime: str) -> None:
    await asyncio.gather(*(harness_of(folder, runtime).run("go") for _ in range(RUNS)))


if __name__ == "__main__":
    way, runtime, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    match way:
        case "run":
            harness = harness_of(folder, runtime)
            try:
                asyncio.run(harness.run("go"))
            finally:
                print(harness.run_id)
        case "gathered":
            asyncio.run(gathered(folder, runtime))
        case "run_stream":
            asyncio.run(stream(folder, runtime))
        case "run_batch":
            asyncio.run(batch(folder, runtime))
        case _:
            result = asyncio.run(harness_of(folder, runtime).resume(sys.argv[4]))
            print(result.status)
