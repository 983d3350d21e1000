"""A driver whose tool says on which loop it runs, and that then looks at its cell's processes.

python -m tests.joining.looping STORE
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness
from harness_actors.agents import ChatAgent
from harness_actors.messages import Message
from harness_actors.stores.reader import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool

HOSTS = {"agent_turn"}
WITHIN_S = 20.0


@tool
async def name_loop() -> str:
    """Name the library of the loop that this runs on."""
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


def _repeat_result(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": messages[-1].text})
    return Reply.call("name_loop", {})


async def until_up(store: Path) -> dict[str, int]:
    """The processes of a cell, by role, when all hosts are connected; a run does not need them."""
    journal = JournalReader(store)
    async with asyncio.timeout(WITHIN_S):
        while True:
            pids = {mark.role: mark.pid for mark in journal.load_processes()}
            if pids.keys() >= HOSTS and channels_of(pids["coordinator"]) >= len(HOSTS):
                journal.close()
                return pids
            await asyncio.sleep(0.05)


def channels_of(pid: int) -> int:
    """Connections of hosts that a coordinator has accepted."""
    listed = Path("/proc/net/unix").read_text().splitlines()[1:]
    # Flags, type, state (3 is connected), inode, and the address where it has one.
    known = {line.split()[6] for line in listed if " 03 " in line and "@harness-" in line}
    links = (os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir())
    return sum(link.removeprefix("socket:[").removesuffix("]") in known for link in links)


async def drive(store: Path) -> dict[str, object]:
    agent = ChatAgent(model=ScriptedModel(_repeat_result), tools=[name_loop])
    async with AgentHarness(agent, store=store, address="local") as harness:
        said = (await harness.run("Where do you run?")).output_text
        pids = await until_up(store)
        hosts = HOSTS & set(pids)
        stand = {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids.values()}
        own = os.getpriority(os.PRIO_PROCESS, 0)
        return {
            "behind": sorted(niceness - own for niceness in stand),
            "loop": said,
            "hosts": len(hosts),
            "channels": channels_of(pids["coordinator"]),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(drive(Path(sys.argv[1])))))
