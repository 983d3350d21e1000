"""A process without the capability to mount, for tests of what becomes of a command's view then.

Runs a command in the folder OWN of TOP: ``TOP OWN COMMAND``, with ``--required`` if it must be
covered; prints its output, or a line that begins with ``refused`` where it does not start.
"""

import asyncio
import ctypes
import os
import sys
from pathlib import Path

from harness_actors.ports import Cover
from harness_actors.tools.shell import run_shell
from harness_actors.tools.supervision.client import SupervisedProcesses

PR_CAPBSET_DROP, CAP_SYS_ADMIN = 24, 21


def go_without(*arguments: str) -> None:
    """Become this program; one that is started has no capability that may not be had."""
    # An error is that it may not be given away, for it is not there.
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-m", __spec__.name, "--begun", *arguments])


async def say(top: Path, own: Path, command: str, *, required: bool) -> None:
    """Run it and print what became of it."""
    processes = SupervisedProcesses()
    try:
        result = await run_shell(
            command,
            folder=own,
            environment={"PATH": "/usr/bin:/bin"},
            timeout_s=30,
            processes=processes,
            cover=Cover(folder=top, spared=own, required=required),
        )
        print(result.output, end="")
    except OSError as error:
        print(f"refused: {error.strerror}")
    finally:
        processes.close()


if __name__ == "__main__":
    given = sys.argv[1:]
    if "--begun" not in given:
        go_without(*given)
    flags = {flag for flag in given if flag.startswith("--")}
    top, own, command = (one for one in given if one not in flags)
    asyncio.run(say(Path(top), Path(own), command, required="--required" in flags))
