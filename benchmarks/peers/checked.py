"""A task that can be checked, as a contender gets it: in nothing but the standard library.

    python -m benchmarks.peers.checked module

reads a task from each line of standard input, does all of them at once by the coroutine of the
module that it names, and answers each with a line.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from benchmarks.file_tools import FileTool, file_tools

MODEL = "fallible"
KEY = "none"
INSTRUCTIONS = "You work on the files of a folder with your tools. Do the whole task."
ATTEMPTS = 10
"""How often a check may send a model back, where a framework wants to be told."""
MOST_CALLS = 200
"""Of the model, where a framework has a limit that may be raised."""

Finish = Callable[["CheckedTask"], Awaitable[None]]
"""Does a task. It ends without an exception where its framework holds the task to be done."""


class NotDoneError(RuntimeError):
    """A framework ended a task without an exception, and says that it is not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTask:
    """What is to be done, and by what a user can tell that it is.

    Attributes:
        how: The coroutine that does it: `defaults` or `checked`.
        base_url: The model server.
        timeout_s: Of one attempt of a request.
        name: By which an answer tells whose it is.
        prompt: What the user says.
        folder: Where it is done.
        prefix: Of the names of the tools.
        expected: For each file the texts of which one must be in it in the end.
    """

    how: str
    base_url: str
    timeout_s: float
    name: str
    prompt: str
    folder: str
    prefix: str
    expected: Mapping[str, Sequence[str]]

    @classmethod
    def from_line(cls, line: str) -> Self:
        return cls(**json.loads(line))

    def as_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @property
    def tools(self) -> list[FileTool]:
        """What the model calls."""
        return file_tools(Path(self.folder), prefix=self.prefix)

    def gap(self) -> str | None:
        """The user's own check: what is not yet as it should be, in words; None where all is."""
        missing = [name for name, texts in self.expected.items() if not self._has(name, texts)]
        if not missing:
            return None
        return f"The task is not done. Not as it should be: {', '.join(missing)}."

    def _has(self, name: str, texts: Sequence[str]) -> bool:
        try:
            found = (Path(self.folder) / name).read_text()
        except (OSError, UnicodeDecodeError):
            return False
        return any(text in found for text in texts)


async def _answer(finish: Finish, task: CheckedTask) -> dict[str, Any]:
    """How a task ended."""
    try:
        await finish(task)
    # Whatever a framework raises is its way to say that a task is not done.
    except Exception as error:  # noqa: BLE001
        said = str(error).strip().splitlines() or [""]
        return {"name": task.name, "claimed": False, "said": f"{type(error).__name__}: {said[0]}"}
    return {"name": task.name, "claimed": True, "said": ""}


async def serve(name: str, answers: Callable[[str], object]) -> None:
    """Do the task of every line until there are no more."""
    module = import_module(name)

    async def one(task: CheckedTask) -> None:
        finish: Finish = getattr(module, task.how)
        answers(json.dumps(await _answer(finish, task)))

    async with asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(sys.stdin.readline):
            group.create_task(one(CheckedTask.from_line(line)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.checked")
    parser.add_argument("module")
    module = parser.parse_args().module
    # What a framework prints goes where errors go.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    asyncio.run(serve(module, lambda line: print(line, file=out, flush=True)))


if __name__ == "__main__":
    main()
