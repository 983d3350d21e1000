"""What code of users prints in a run, on the terminal while it is printed."""

import asyncio
from contextlib import suppress
from pathlib import Path

from harness_actors.cli.event_lines import EventLines

LOOK_S = 0.1
"""Between two looks at the log, in seconds."""
_TIME_CHARS = len("2026-01-31T23:59:59.999 ")


class LogLines:
    """Shows the log of one run as it grows, on the machine where it is written.

    Args:
        path: The log; it may never come to be.
        lines: Where to.
    """

    def __init__(self, path: Path, lines: EventLines) -> None:
        self._path = path
        self._lines = lines
        self._read = 0
        self._rest = b""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """The run is over, and all that it printed is there: show what is left."""
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        self.show_new()
        if self._rest:
            self._show(self._rest)

    async def _follow(self) -> None:
        while True:
            self.show_new()
            await asyncio.sleep(LOOK_S)

    def show_new(self) -> None:
        """Show what is there by now."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return  # nothing was printed yet, or somebody has removed it
        self._read += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        for line in whole:
            self._show(line)

    def _show(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if text:
            self._lines.note(f"  {text[_TIME_CHARS:] if text[4:5] == '-' else text}")
