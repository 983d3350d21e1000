"""Asking a person at the terminal that a command was given at."""

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from harness_actors.cli.questions import dialogue
from harness_actors.printing.plain import say
from harness_actors.results import OpenQuestion

if TYPE_CHECKING:
    from harness_actors.cli.deciding import Deciding
    from harness_actors.cli.questions import Choosing

WANTED = "answer"
MOST_LINE_BYTES = 4095
"""Of one line, its end included: a terminal keeps no more, and drops the rest."""


def is_somebody_there() -> bool:
    """Whether a person at a terminal sees what is asked and can answer it."""
    # There is none of them where its file was closed before the command began.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return False
    try:
        # In the background, reading would stop the process.
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return True  # a terminal that controls no jobs


def forget_typed_ahead() -> None:
    """Drop what was typed at the terminal so far: nobody approves what was not shown yet."""
    if sys.stdin is not None and sys.stdin.isatty():
        with suppress(termios.error):  # of one that is gone
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class Asker:
    """Asks questions, one after the other, without holding up anything else.

    Attributes:
        is_asking: A question stands there now.
        was_stopped: Whoever was asked does not want to answer now.
        before: Called before each question: whoever keeps lines in place at the terminal, rests.
    """

    def __init__(self) -> None:
        self.was_stopped = False
        self.before: Callable[[], None] | None = None
        self._is_over = False
        """There are no more lines."""
        self._reading: asyncio.Future[bytes | None] | None = None
        self._is_free = asyncio.Event()
        self._is_free.set()

    async def until_free(self) -> None:
        """Wait while a question stands at the terminal: nothing else is to be written there."""
        await self._is_free.wait()

    @property
    def is_asking(self) -> bool:
        return self._reading is not None

    def stop(self) -> None:
        """Ask nothing more; what stands there stays unanswered."""
        self.was_stopped = True
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    async def ask(self, question: OpenQuestion) -> str | None:
        """Ask until there is an answer.

        Returns:
            None where it is left open: the terminal is gone or in the background, its user has
            no more to say (Ctrl-D), or `stop` was called.
        """
        # Where stderr is a file, the answers of models are on the terminal, and so is this.
        out = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else sys.stdout
        asked = dialogue(question)
        self._is_free.clear()
        if self.before is not None:
            self.before()
        try:
            return await self._answer(asked, question, out)
        finally:
            self._is_free.set()

    async def _answer(
        self, asked: "Choosing | Deciding", question: OpenQuestion, out: IO[str]
    ) -> str | None:
        lines: Iterable[str] = asked.put()
        with suppress(OSError):  # of a terminal that is gone
            if question.kind == "approval":
                forget_typed_ahead()
            while not (self.was_stopped or self._is_over) and is_somebody_there():
                for one in lines:
                    say(one, out)
                line = await self._line(f"{asked.wanted or WANTED}> ", out)
                if line is None:
                    break
                if (answer := asked.take(_text_of(line, out))) is not None:
                    return answer
                lines = asked.told
        return None

    async def _line(self, prompt: str, out: IO[str]) -> bytes | None:
        """A line that is typed; None for the end of all lines."""
        print(prompt, end="", file=out, flush=True)
        loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
        reading: asyncio.Future[bytes | None] = loop.create_future()
        self._reading = reading
        loop.add_reader(terminal, _read, terminal, reading)
        try:
            line = await reading
        finally:
            loop.remove_reader(terminal)
            self._reading = None
        if line is None:
            self._is_over = True
            print(file=out, flush=True)  # what follows begins in a line of its own
        return line


def _text_of(line: bytes, out: IO[str]) -> str | None:
    """What was typed; None where that cannot be told, and it was said why."""
    if len(line) > MOST_LINE_BYTES:
        problem = "a terminal takes no more of a line; give it by `harness ctl run answer`"
        say(f"{problem}, `approve` or `deny`", out)
        return None
    try:
        return line.decode(sys.stdin.encoding)
    except UnicodeDecodeError:
        say(f"that is no text in {sys.stdin.encoding}", out)
        return None


def _read(terminal: int, reading: "asyncio.Future[bytes | None]") -> None:
    try:
        # A terminal gives a line at a time.
        line = os.read(terminal, 2 * MOST_LINE_BYTES)
    except OSError:
        line = b""
    if not reading.done():
        reading.set_result(line or None)
