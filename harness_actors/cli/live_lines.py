"""Lines that are kept in place at the end of a terminal, while others go by above them."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

FRAME_S = 0.1
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
MOST_LINES = 8
_UP_AND_CLEAR = "\x1b[{lines}A\x1b[J"


@dataclass(slots=True)
class _Line:
    head: str
    doing: str = ""
    since: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        parts = [self.head, f"{time.monotonic() - self.since:.0f} s", self.doing]
        return " · ".join(filter(None, parts))


class LiveLines:
    """A line for each thing that goes on, with a wheel that turns; gone when it is over.

    Args:
        out: A terminal.
    """

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._lines: dict[str, _Line] = {}
        self._drawn = 0
        self._frame = 0
        self._rests = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, name: str, head: str) -> None:
        """Something goes on.

        Args:
            name: By which it is known here.
            head: What its line begins with: one line without anything harmful, as all texts here.
        """
        self._lines[name] = _Line(head)
        self._draw()

    def tell(self, name: str, head: str, doing: str) -> None:
        """It does something; where it was not known, it goes on from here on."""
        self._lines.setdefault(name, _Line(head)).doing = doing
        self._draw()

    def end(self, name: str) -> None:
        """It is over."""
        if self._lines.pop(name, None) is not None:
            self._draw()

    def clear(self, beginning: str = "") -> None:
        """All is over whose name begins so."""
        over = [name for name in self._lines if name.startswith(beginning)]
        for name in over:
            del self._lines[name]
        if over:
            self._draw()

    def rest(self) -> None:
        """Nothing is kept there until the next line goes by: the terminal is for another text."""
        self._erase()
        self._rests = True

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A line goes by."""
        self._erase()
        yield
        self._rests = False
        self._draw()

    def _draw(self) -> None:
        self._erase()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._lines or self._rests:
            return
        # Here: most commands keep nothing in place.
        from rich.cells import set_cell_size

        width = shutil.get_terminal_size().columns - 1
        wheel = FRAMES[self._frame % len(FRAMES)]
        texts = [f"    {wheel} {line.text()}" for line in self._shown()]
        if (more := len(self._lines) - len(texts)) > 0:
            texts.append(f"    and {more} more")
        # A line that the terminal would break could not be taken back.
        self._out.write("".join(f"{set_cell_size(text, width).rstrip()}\n" for text in texts))
        self._out.flush()
        self._drawn = len(texts)
        self._timer = asyncio.get_running_loop().call_later(FRAME_S, self._turn)

    def _shown(self) -> list[_Line]:
        return list(self._lines.values())[:MOST_LINES]

    def _turn(self) -> None:
        self._frame += 1
        self._draw()

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(_UP_AND_CLEAR.format(lines=self._drawn))
            self._out.flush()
            self._drawn = 0


def live_lines(out: IO[str]) -> LiveLines | None:
    """Lines kept in place; None where that leads to no terminal that could."""
    return LiveLines(out) if out.isatty() and os.environ.get("TERM") != "dumb" else None
