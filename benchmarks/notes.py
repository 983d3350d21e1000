"""The work that every contender does: conversations in which a model calls one tool.

In each round the model asks for a line in a file, and in the end it answers. The tool
has an effect that must not happen twice, so whoever wants to survive a crash must write
down that it begins; declared as read-only, the same work shows what that costs.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from harness_actors import tool
from harness_actors.testing import Reply
from harness_actors.tools import FunctionTool

INSTRUCTIONS = "You take notes. Call the tool for each of them, then say that you are done."
MODEL = "loopback"
KEY = "none"
NOTED = "noted"
TIMES = "*"
"""Between a tool and how often it is called in a round."""


@tool
async def note(path: str, line: str, size: int = 0) -> str:
    """Write a line to the end of a file.

    Args:
        path: The file.
        line: What to write.
        size: How long the answer is to be, in characters.
    """
    return _note(path, line, size)


# Its notes are there to be counted; for the harness it changes nothing.
@tool(effect="read_only")
async def look(path: str, line: str, size: int = 0) -> str:
    """Look a line up in a file.

    Args:
        path: The file.
        line: What to look for.
        size: How long the answer is to be, in characters.
    """
    return _note(path, line, size)


def _note(path: str, line: str, size: int) -> str:
    # One write to a file opened for appending: lines of several writers do not mix.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)
    return NOTED.ljust(size, ".")


TOOLS: Mapping[str, FunctionTool[..., Any]] = {"note": note, "look": look}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a contender is to do.

    Attributes:
        base_url: The model server.
        folder: Where its files go.
        conversations: How many.
        rounds: Rounds of each that call the tool; one more answer ends it.
        at_once: How many conversations at a time; None for all.
        tool: Which of `TOOLS` is called.
        result_bytes: Length of its results, at least that of `NOTED`.
        task_bytes: Length of what the user says, if that is longer than it has to be.
        rounds_per_turn: For the harness; 1 sends each round through all executors.
        cells: For the harness; they share the conversations.
        calls: Of the tool, in each round.
    """

    base_url: str = ""
    folder: Path = Path()
    conversations: int
    rounds: int
    at_once: int | None = None
    tool: str = "note"
    result_bytes: int = 0
    task_bytes: int = 0
    rounds_per_turn: int = 40
    cells: int = 1
    calls: int = 1

    def task(self, number: int, log: Path) -> str:
        """What the user says in a conversation; `script` reads it."""
        tool = self.tool if self.calls == 1 else f"{self.tool}{TIMES}{self.calls}"
        said = f"{number} {self.rounds} {tool} {self.result_bytes} {log}\n"
        return said.ljust(self.task_bytes, ".")

    @property
    def log(self) -> Path:
        """Where the notes of the measured conversations go."""
        return self.folder / "notes"

    @property
    def model_calls(self) -> int:
        """Of all conversations."""
        return self.conversations * (self.rounds + 1)

    @property
    def tool_calls(self) -> int:
        """Of all conversations."""
        return self.conversations * self.rounds * self.calls

    def as_json(self) -> str:
        """To be handed to another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "folder": Path(fields["folder"])})


def script(body: Mapping[str, Any]) -> Reply:
    """What the loopback server answers."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    task = next(message["content"] for message in messages if message["role"] == "user")
    number, rounds, name, size, path = task.partition("\n")[0].split(" ", 4)
    spoken = sum(message["role"] == "assistant" for message in messages)
    if spoken == int(rounds):
        return Reply.text("All notes are taken.")
    name, _, times = name.partition(TIMES)
    line = f"conversation {number}, note {spoken}"
    if not times:
        return Reply.call(name, {"path": path, "line": line, "size": int(size)})
    lines = [f"{line}.{place}" for place in range(int(times))]
    return Reply.calls([(name, {"path": path, "line": one, "size": int(size)}) for one in lines])
