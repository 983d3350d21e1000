"""The work that every contender does: conversations in which a model calls one tool.

In each round the model asks for a line in a file, and in the end it answers. The tool
has an effect that must not happen twice, so whoever wants to survive a crash must write
down that it begins.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_actors import tool
from harness_actors.testing import Reply

INSTRUCTIONS = "You take notes. Call the tool for each of them, then say that you are done."
MODEL = "loopback"
KEY = "none"


@tool
async def note(path: str, line: str) -> str:
    """Write a line to the end of a file.

    Args:
        path: The file.
        line: What to write.
    """
    # One write to a file opened for appending: lines of several writers do not mix.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)
    return "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a contender is to do.

    Attributes:
        base_url: The model server.
        folder: Where its files go.
        conversations: How many, all at once.
        rounds: Rounds of each that call the tool; one more answer ends it.
    """

    base_url: str
    folder: Path
    conversations: int
    rounds: int

    def task(self, number: int, log: Path) -> str:
        """What the user says in a conversation; `script` reads it."""
        return f"{number} {self.rounds} {log}"

    @property
    def log(self) -> Path:
        """Where the notes of the measured conversations go."""
        return self.folder / "notes"


def script(body: Mapping[str, Any]) -> Reply:
    """What the loopback server answers."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    task = next(message["content"] for message in messages if message["role"] == "user")
    number, rounds, path = task.split(" ", 2)
    spoken = sum(message["role"] == "assistant" for message in messages)
    if spoken == int(rounds):
        return Reply.text("All notes are taken.")
    return Reply.call("note", {"path": path, "line": f"conversation {number}, note {spoken}"})
