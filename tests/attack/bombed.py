"""A process that has a bomb supervised, and then a good command; see `classes.fork_bombs`.

It prints, as JSON, what was said of the bomb, how long it took until that was said, how many of its
processes were left then, and what the good command said after that.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.command import run_command
from harness_actors.tools.processes import carries, list_processes
from harness_actors.tools.supervision.client import SupervisedProcesses

OF_THE_BOMB = {"HARNESS_RUN": "bombed"}
"""The variable that its processes carry; bombs leave it in place."""


async def bombed(bomb: str, timeout_s: float) -> dict[str, object]:
    """What came of a bomb."""
    processes = SupervisedProcesses()
    with tempfile.TemporaryDirectory() as folder:
        context = ToolContext(
            run_id="run",
            call_id="call",
            workspace=Path(folder),
            in_thread=asyncio.to_thread,
            environment=OF_THE_BOMB,
            processes=processes,
        )
        try:
            arguments = json.dumps({"command": bomb, "timeout_s": timeout_s})
            begun = time.monotonic()
            said = await _said(arguments, context)
            took_s = time.monotonic() - begun
            left = sum(carries(pid, OF_THE_BOMB) for pid in list_processes())
            good = await _said('{"command": "echo hello", "timeout_s": 60}', context)
        finally:
            processes.close()
    return {"said": said, "took_s": took_s, "left": left, "good": good}


async def _said(arguments: str, context: ToolContext) -> str:
    try:
        return await run_command.run(arguments, context)
    except ToolError as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(bombed(sys.argv[1], float(sys.argv[2])))))
