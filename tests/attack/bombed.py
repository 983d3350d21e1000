"""A process that has a bomb supervised, and then a good command; see `classes.fork_bombs`.

It prints, as JSON, what was said of the bomb, how long its end took after its time or its bound,
what the good command said after that, and how many of the bomb's processes were left.
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
from harness_actors.tools.processes import list_processes
from harness_actors.tools.supervision.client import SupervisedProcesses


async def bombed(bomb: str, timeout_s: float) -> dict[str, object]:
    """What came of a bomb."""
    processes = SupervisedProcesses()
    with tempfile.TemporaryDirectory() as folder:
        context = ToolContext(
            run_id="run",
            call_id="call",
            workspace=Path(folder),
            in_thread=asyncio.to_thread,
            environment={"HARNESS_RUN": "bombed"},
            processes=processes,
        )
        try:
            arguments = json.dumps({"command": bomb, "timeout_s": timeout_s})
            begun = time.monotonic()
            said = await _said(arguments, context)
            took_s = time.monotonic() - begun
            left = _left()
            good = await _said('{"command": "echo hello", "timeout_s": 60}', context)
        finally:
            processes.close()
    return {"said": said, "took_s": took_s, "left": left, "good": good}


async def _said(arguments: str, context: ToolContext) -> str:
    try:
        return await run_command.run(arguments, context)
    except ToolError as error:
        return str(error)


def _left() -> int:
    """Processes that carry the variable of the run; bombs leave theirs in place."""
    found = 0
    for pid in list_processes():
        try:
            found += b"HARNESS_RUN=bombed" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(bombed(sys.argv[1], float(sys.argv[2])))))
