"""What code of users prints in a run, on the terminal while it is printed."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from harness_actors.cli.event_lines import EventLines

LOOK_S = 0.1
"""Between two looks at the log, in seconds."""
HELD_S = 2.0
"""How long a line waits for the event that its tool begins, which may be lost."""
_TIME_CHARS = len("2026-01-31T23:59:59.999 ")


class LogLines:
    """Shows the log of one run as it grows, on the machine where it is written.

    A file is quicker than an event: what a tool prints is held until it is told that the tool
    has begun.

    Args:
        path: The log; it may never come to be.
        lines: Where to.
        skipped: Bytes at its beginning that are not shown.
        whose: What each line begins with, where several runs are shown.
    """

    def __init__(self, path: Path, lines: EventLines, *, skipped: int = 0, whose: str = "") -> None:
        self._path = path
        self._lines = lines
        self._whose = whose or " "
        self._read = skipped
        self._rest = b""
        self._held: deque[tuple[float, str]] = deque()
        self._begun: set[str] = set()
        """Tools that were told to be at work."""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """The run is over, and all that it printed is there: show what is left."""
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        self.show_all()
        if self._rest:
            self._show(self._text(self._rest))

    def begin(self, tool: str) -> None:
        """It was told that a tool begins: what it prints may be shown."""
        self._begun.add(tool)

    def show_all(self) -> None:
        """Show what is there by now; what is printed from here on waits for its tool again."""
        self._look()
        while self._held:
            self._show(self._held.popleft()[1])
        self._begun.clear()

    async def _follow(self) -> None:
        while True:
            self._look()
            while self._held and self._is_due(*self._held[0]):
                self._show(self._held.popleft()[1])
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return  # nothing was printed yet, or somebody has removed it
        self._read += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        now = time.monotonic()
        self._held.extend((now, self._text(line)) for line in whole if line)

    def _is_due(self, since: float, text: str) -> bool:
        origin = text[1:].split("]", 1)[0].split(" ", 1)[0]
        return origin in {"model", *self._begun} or time.monotonic() - since > HELD_S

    def _text(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        return text[_TIME_CHARS:] if text[4:5] == "-" else text

    def _show(self, text: str) -> None:
        self._lines.note(f"{self._whose} {text}")
