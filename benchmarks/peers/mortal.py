"""A tool whose first call is the end of its process: what is left is what was written down."""

import os
import signal
from pathlib import Path

from benchmarks.peers import conversations
from benchmarks.peers.conversations import Work

FATAL = "note 1"
"""The call that kills, of the three that a conversation makes: notes 0, 1 and 2."""


async def note(path: str, line: str) -> str:
    """Write a line to the end of a file.

    Args:
        path: The file.
        line: What to write.
    """
    said = await conversations.note(path, line)
    scar = Path(path).with_name("killed")
    if line.endswith(FATAL) and not scar.exists():
        scar.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return said


def was_killed(work: Work) -> bool:
    """This process is the second one, and is to go on where the first was killed."""
    return (work.folder / "killed").exists()
