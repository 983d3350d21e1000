"""The work of every contender, in nothing but the standard library: each brings its own packages.

In each round the model asks for a line in a file, or for some at once, and in the end it answers.
In a tree it delegates instead, to many at once, and each of these holds such a conversation.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INSTRUCTIONS = "You take notes. Call the tool for each of them, then say that you are done."
DELEGATES = "You have notes taken. Call the tool for each of them, then say that you are done."
DESCRIPTION = "Have an agent take notes, and get its answer."
AGENT = "notes"
"""Of the agent to which a tree's parent delegates, and of the tool by which it does."""
MODEL = "loopback"
KEY = "none"
WARM_UP_CONVERSATIONS, WARM_UP_ROUNDS = 10, 2
WARM_UP_CHILDREN = 4
"""Of the one tree that is the warm-up of trees."""
FAILURE = "failure"
TOGETHER_WITHIN_S = 20.0
"""How long a call waits until those beside it have begun."""
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


async def note_together(path: str, line: str) -> str:
    """Write a line to the end of a file.

    Args:
        path: The file.
        line: What to write.
    """
    # The same, when all calls of its message have begun: whoever makes them one after the other
    # fails, and is not taken for somebody who makes them at once.
    message, _, calls = line.rpartition(" of ")
    about = path, message.rpartition(".")[0]
    if about not in _BEGUN:
        _BEGUN[about] = _Begun(int(calls), Path(path).with_name(FAILURE))
    await _BEGUN[about].all()
    _BEGUN.pop(about, None)
    return await note(path, line)


async def note_of_child(path: str, line: str) -> str:
    """Write a line to the end of a file.

    Args:
        path: The file.
        line: What to write.
    """
    # Those of the first round begin together: whoever has children one after the other fails.
    return await (note_together if " of " in line else note)(path, line)


# What the model calls them: they are no other tools.
note_together.__name__ = note_of_child.__name__ = "note"


class _Begun:
    """The calls of one message that have begun, of so many."""

    def __init__(self, calls: int, failure: Path) -> None:
        self._left = calls
        self._failure = failure
        loop = asyncio.get_running_loop()
        self._all: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_later(TOGETHER_WITHIN_S, self._give_up)

    async def all(self) -> None:
        self._left -= 1
        if self._left == 0 and not self._all.done():
            self._timer.cancel()
            self._all.set_result(None)
        await asyncio.shield(self._all)

    def _give_up(self) -> None:
        said = f"{self._left} calls of a message do not begin before another one of it ends"
        # Frameworks tell the model of what a tool raises, and nobody else.
        self._failure.write_text(said)
        self._all.set_exception(TimeoutError(said))


_BEGUN: dict[tuple[str, str], _Begun] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a contender is to do.

    Attributes:
        base_url: The model server.
        folder: Where its files go.
        conversations: How many, all at once.
        rounds: Rounds of each that call the tool; one more answer ends it.
        calls: How often each calls it, at once.
        children: To how many a conversation delegates, at once, which hold its rounds; 0 for none.
        window: Tokens that a request may have, where conversations are summarized.
    """

    base_url: str
    folder: Path
    conversations: int
    rounds: int
    calls: int = 1
    children: int = 0
    window: int = 0

    @property
    def tool(self) -> Callable[..., Awaitable[str]]:
        """What the model calls; in a tree those of the children."""
        if self.children:
            return note_of_child
        return note if self.calls == 1 else note_together

    @property
    def model_calls(self) -> int:
        """The most that a conversation makes, or a child."""
        return self.rounds + 1

    @property
    def log(self) -> Path:
        """Where the notes of the measured conversations go."""
        return self.folder / "notes"

    @property
    def failure(self) -> Path:
        """Where a contender that fails says why."""
        return self.folder / FAILURE

    def tasks(self) -> list[str]:
        """What the user says, one per conversation; the server's script reads it."""
        return [self._task(number, self.rounds, self.log) for number in range(self.conversations)]

    def warm_up(self) -> list[str]:
        """What the user says in the conversations of the warm-up, which are not measured."""
        log = self.folder / "warm-up"
        if self.children:
            return [_tree(0, WARM_UP_CHILDREN, WARM_UP_ROUNDS, log)]
        return [self._task(number, WARM_UP_ROUNDS, log) for number in range(WARM_UP_CONVERSATIONS)]

    def _task(self, number: int, rounds: int, log: Path) -> str:
        if self.children:
            return _tree(number, self.children, rounds, log)
        calls = "" if self.calls == 1 else f"x{self.calls}"
        return f"{number} {rounds}{calls} {log}"


def _tree(number: int, children: int, rounds: int, log: Path) -> str:
    return f"{number} {rounds}*{children} {log}"


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
