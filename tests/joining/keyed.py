"""A driver with two keys: its model's, and one of a tool. It tells which processes show them.

python -m tests.joining.keyed STORE
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness, ChatAgent, Message, OpenAIModel, tool
from harness_actors.testing import LoopbackServer, Reply, over_messages

MODELS, TOOLS = "sk-canary-of-the-model", "sk-canary-of-the-tool"


@tool(effect="read_only")
def look() -> str:
    """Tell the tool's key, and by name the processes in whose environments a key is."""
    mark = f"RAY_TMPDIR={os.environ['RAY_TMPDIR']}".encode()
    shown = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            entries = (process / "environ").read_bytes()
        except OSError:
            continue
        if mark in entries.split(b"\0") and b"sk-canary" in entries:
            shown.append((process / "cmdline").read_bytes().decode().replace("\0", " ")[:200])
    return json.dumps({"key": os.environ.get("TOOL_API_KEY"), "shown": shown})


def answer(messages: Sequence[Message]) -> Reply:
    """Look, and say what was seen."""
    last = messages[-1]
    return Reply.text(last.text) if last.role == "tool" else Reply.call("look")


async def drive(store: str) -> str:
    async with LoopbackServer(over_messages(answer), key=MODELS) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        agent = ChatAgent(model=model, instructions="", tools=[look])
        harness = AgentHarness(agent, store=store, address="local", completion="answer")
        async with harness:
            result = await harness.run("look")
            return result.output_text or str(result)


if __name__ == "__main__":
    # As they are set before the program begins, so that its own environment shows them.
    assert os.environ["OPENAI_API_KEY"] == MODELS
    print(asyncio.run(drive(sys.argv[1])))
