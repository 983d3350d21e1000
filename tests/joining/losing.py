"""A driver whose runs have a tool that kills the raylet of the Ray that they run on.

    python -m tests.joining.losing STORE REPORT

Its first run loses one Ray and goes on; the second loses each, with a driver that starts none
again; the third loses none. The driver's parent is gone when that happens, as that of a command
under ``nohup`` is. REPORT becomes one JSON object, when all has happened: how the runs ended or
the error that they ended with, what was told of the losses, and where the tool began.
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


def losing(store: Path) -> ChatAgent:
    log = str(store.with_suffix(".log"))

    def answer(messages: Sequence[Message]) -> Reply:
        task = next(message.text for message in messages if message.role == "user")
        killed = sum(message.role == "tool" for message in messages)
        if killed < {"lose one": 1, "lose all": 9, "lose none": 0}[task]:
            return Reply.call("kill_raylet", {"log": log})
        return Reply.call("work_complete", {"summary": f"done after {killed} raylets"})

    return ChatAgent(model=ScriptedModel(answer), tools=[kill_raylet])


async def drive(store: Path) -> dict[str, Any]:
    told: list[str] = []
    report: dict[str, Any] = {"told": told, "parent": os.getppid()}
    async with AgentHarness(losing(store), store=store, address="local", on_loss=told.append) as h:
        report["one"] = (await h.run("lose one")).output_text
        h.begin_conversation()
        # Not above: it loads Ray, which the harness is to load first.
        from harness_actors.actors.joining import losses

        bound, losses.ATTEMPTS = losses.ATTEMPTS, 0
        try:
            await h.run("lose all")
        except ActorLostError as error:
            report["all"] = str(error)
        losses.ATTEMPTS = bound
        # The next one is served by whatever Ray there is by then.
        h.begin_conversation()
        report["none"] = (await h.run("lose none")).output_text
    report["begun"] = store.with_suffix(".log").read_text().split()
    return report


def main(store: str, report: str) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    told = asyncio.run(drive(Path(store)))
    whole = Path(f"{report}.part")
    whole.write_text(json.dumps(told))
    whole.rename(report)


if __name__ == "__main__":
    main(*sys.argv[1:])
