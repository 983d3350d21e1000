"""Commands at a terminal of their own."""

import asyncio
import fcntl
import os
import pty
import signal
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.commands import END_WITHIN_S, HARNESS


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
    # Without it, `input` sends a terminal codes that are not what was said.
    return {**kept, "HARNESS_HOME": str(home), "TERM": "dumb"}


class Terminal:
    """A terminal with a command in it."""

    def __init__(self, process: asyncio.subprocess.Process, end: int) -> None:
        self.process = process
        self._end = end
        self._shown = ""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(end, self._read)

    def type(self, text: str | bytes) -> None:
        os.write(self._end, text.encode() if isinstance(text, str) else text)

    async def until_shown(self, text: str) -> str:
        """Wait until it shows something new; what it has shown up to there."""
        async with asyncio.timeout(END_WITHIN_S):
            while text not in self._shown:
                self._news.clear()
                await self._news.wait()
        before, _, self._shown = self._shown.partition(text)
        return before + text

    async def left(self) -> int:
        """Wait until the command has ended: its exit status."""
        async with asyncio.timeout(END_WITHIN_S):
            return await self.process.wait()

    def hang_up(self) -> None:
        """It is gone, as where its window is closed."""
        if self._end != -1:
            asyncio.get_running_loop().remove_reader(self._end)
            os.close(self._end)
            self._end = -1

    def _read(self) -> None:
        try:
            self._shown += os.read(self._end, 65_536).decode("utf-8", "replace")
        except OSError:
            # The command has closed its end, which a terminal tells by an error.
            asyncio.get_running_loop().remove_reader(self._end)
        self._news.set()


@asynccontextmanager
async def at_a_terminal(
    home: Path, arguments: Sequence[str], before: Sequence[str] = ()
) -> AsyncIterator[Terminal]:
    """`harness` with these arguments, at a terminal; `before` is what starts it, if anything."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *before,
        *HARNESS,
        *arguments,
        env=environment(home),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # So that Ctrl-C, typed, is a signal for it alone.
        preexec_fn=_adopt_terminal,
    )
    os.close(theirs)
    terminal = Terminal(process, ours)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        terminal.hang_up()


def _adopt_terminal() -> None:
    # As a shell starts it, whatever started these tests.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
