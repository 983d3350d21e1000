"""A driver whose run has a tool that kills the raylet of the Ray that it runs on.

    python -m tests.joining.losing STORE TIMES REPORT

It does so TIMES times, and then the run is over. The driver's parent is gone when that happens, as
that of a command under ``nohup`` is. REPORT becomes one JSON object, when all has happened: how the
run ended or the error that it ended with, what was told of the losses, and where the tool began.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_actors import AgentHarness
from harness_actors.agents import ChatAgent
from harness_actors.errors import ActorLostError
from harness_actors.messages import Message
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool


@tool
async def kill_raylet(log: str) -> str:
    """Kill it, and never return: its actor lives on."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{os.getpid()}\n".encode())
    os.kill(int(os.environ["RAY_RAYLET_PID"]), signal.SIGKILL)
    await asyncio.Event().wait()
    return "not reached"


async def drive(store: Path, times: int) -> dict[str, Any]:
    log = store.with_suffix(".log")

    def answer(messages: Sequence[Message]) -> Reply:
        said = sum(message.role == "assistant" for message in messages)
        if said < times:
            return Reply.call("kill_raylet", {"log": str(log)})
        return Reply.call("work_complete", {"summary": f"done after {said} raylets"})

    agent = ChatAgent(model=ScriptedModel(answer), tools=[kill_raylet])
    told: list[str] = []
    harness = AgentHarness(agent, store=store, address="local", on_loss=told.append)
    report: dict[str, Any] = {"told": told, "parent": os.getppid()}
    try:
        report["text"] = (await harness.run("go on")).output_text
    except ActorLostError as error:
        report["error"] = str(error)
    # The next one is served by whatever Ray there is by then.
    report["next"] = (await ended(store)).output_text if "error" in report else ""
    await harness.close()
    report["begun"] = log.read_text().split()
    return report


async def ended(store: Path) -> Any:
    """A run of another agent on a store that was given up."""
    agent = ChatAgent(model=ScriptedModel(lambda _: Reply.text("well")), instructions="Answer.")
    async with AgentHarness(agent, store=store, address="local", completion="answer") as harness:
        return await harness.run("are you there?")


def main(store: str, times: str, report: str) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    told = asyncio.run(drive(Path(store), int(times)))
    whole = Path(f"{report}.part")
    whole.write_text(json.dumps(told))
    whole.rename(report)


if __name__ == "__main__":
    main(*sys.argv[1:])
