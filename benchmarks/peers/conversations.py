"""The work of every contender, in nothing but the standard library: each brings its own packages.

In each round the model asks for a line in a file, and in the end it answers.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INSTRUCTIONS = "You take notes. Call the tool for each of them, then say that you are done."
MODEL = "loopback"
KEY = "none"
WARM_UP_CONVERSATIONS, WARM_UP_ROUNDS = 10, 2
# As `benchmarks.windows` reads it, which the environments of the contenders cannot import.
MARK = "@window "


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

    @property
    def model_calls(self) -> int:
        """The most that a conversation makes."""
        return self.rounds + 1

    @property
    def log(self) -> Path:
        """Where the notes of the measured conversations go."""
        return self.folder / "notes"

    @property
    def failure(self) -> Path:
        """Where a contender that fails says why."""
        return self.folder / "failure"

    def tasks(self) -> list[str]:
        """What the user says, one per conversation; the server's script reads it."""
        return [f"{number} {self.rounds} {self.log}" for number in range(self.conversations)]

    def warm_up(self) -> list[str]:
        """What the user says in the conversations of the warm-up, which are not measured."""
        log = self.folder / "warm-up"
        return [f"{number} {WARM_UP_ROUNDS} {log}" for number in range(WARM_UP_CONVERSATIONS)]


@contextmanager
def window(name: str) -> Iterator[None]:
    """Count what follows; the measuring process does, from outside."""
    _mark(f"begin {name}")
    yield
    _mark(f"end {name}")


def _mark(said: str) -> None:
    print(MARK + said, file=sys.__stdout__, flush=True)
    # The measuring process answers when it has looked.
    sys.stdin.readline()


def keep_marks_apart() -> None:
    """Have standard output to marks alone: what a contender prints goes where errors go."""
    sys.stdout = sys.stderr


async def hold(converse: Callable[[str], Awaitable[object]], work: Work) -> None:
    """Hold the warm-up, and then the measured conversations, all at once in this process.

    Args:
        converse: Holds one conversation, given what the user says.
        work: Which.
    """
    await asyncio.gather(*map(converse, work.warm_up()))
    with window("work"):
        await asyncio.gather(*map(converse, work.tasks()))
