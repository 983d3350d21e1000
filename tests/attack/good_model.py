"""The model of good runs: a server of its own, which writes down when each round begins.

It asks for a small read and a small edit in turn until a file says that it is enough.
"""

import os
import time
from pathlib import Path
from typing import Any

from harness_actors.testing import Reply

LOG_VARIABLE = "GOOD_ROUNDS_LOG"
"""Names the file for a line a round: the task, and the second by the machine's clock."""
ENOUGH_VARIABLE = "GOOD_ROUNDS_ENOUGH"
"""Names the file that ends all runs once it is there."""

NOTES = "notes.txt"


def works(body: dict[str, Any]) -> Reply:
    """Answer the next round of a good run."""
    messages = body["messages"]
    task = next(message["content"] for message in messages if message["role"] == "user")
    with Path(os.environ[LOG_VARIABLE]).open("a") as log:
        log.write(f"{task} {time.monotonic()}\n")
    if Path(os.environ[ENOUGH_VARIABLE]).exists():
        return Reply.call("work_complete", {"summary": "enough"})
    done = sum(message["role"] == "tool" for message in messages)
    if done % 2 == 0:
        return Reply.call("read_file", {"path": NOTES})
    # Each edit is another one: notes that change to and fro are a circle, which ends a run.
    edits = done // 2
    return Reply.call(
        "edit_file", {"path": NOTES, "old_text": note(edits), "new_text": note(edits + 1)}
    )


def note(edits: int) -> str:
    """What the notes say after so many edits."""
    return f"note {edits}."
