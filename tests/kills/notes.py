"""An effectful tool that leaves a line for each time it ran. Found beside agent.yaml."""

import asyncio
import os

from harness_actors.ports import ToolContext
from harness_actors.tools import tool


@tool
async def note(path: str, seconds: float, context: ToolContext) -> str:
    """Write a line to a file, then take some time.

    Args:
        path: The file.
        seconds: How long it takes after the line is written.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{context.run_id} {context.call_id}\n".encode())
    finally:
        os.close(handle)
    await asyncio.sleep(seconds)
    return "noted"
