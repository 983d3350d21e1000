"""What code of users prints and logs while it serves a run: kept in the log of that run."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from harness_actors.ports.origins import ORIGIN
from harness_actors.stores.logs import RunLog

LINE_CHARS = 16_000
"""A line that is longer is kept in several."""
LOCKED_S = 1.0
"""A process that was forked may have got a lock that nobody will release."""


class RunOutput:
    """What is printed while one hop of a run is served. Nothing is written without a line.

    Args:
        log: The log of the run.
        executor: Who serves it, where no tool or model says more.
    """

    def __init__(self, log: RunLog, executor: str) -> None:
        self._log = log
        self._executor = executor
        self._lock = threading.RLock()
        self._begun: dict[tuple[str, str, int], str] = {}
        """Lines without an end, by stream, origin and thread."""

    def write(self, stream: str, text: str) -> None:
        """Take a piece of what is printed.

        Args:
            stream: ``"stdout"`` or ``"stderr"``.
            text: Lines, or parts of one.
        """
        origin = ORIGIN.get() or self._executor
        key = (stream, origin, threading.get_ident())
        if not self._lock.acquire(timeout=LOCKED_S):
            return
        try:
            *lines, rest = (self._begun.pop(key, "") + text).split("\n")
            if len(rest) > LINE_CHARS:
                lines, rest = [*lines, rest], ""
            if rest:
                # Of what overwrites itself, such as a bar, the newest is enough.
                self._begun[key] = rest[rest.rstrip("\r").rfind("\r") + 1 :]
            self._add(stream, origin, lines)
        finally:
            self._lock.release()

    def record(self, record: logging.LogRecord) -> None:
        """Take what was logged where no handler is configured."""
        origin = ORIGIN.get() or self._executor
        text = _RECORD.format(record)
        self._add(f"{record.levelname} {record.name}", origin, text.split("\n"))

    def close(self) -> None:
        """The hop is over: what has no end of line is a line, too."""
        if not self._begun or not self._lock.acquire(timeout=LOCKED_S):
            return
        try:
            begun, self._begun = self._begun, {}
            for (stream, origin, _), text in begun.items():
                self._add(stream, origin, [text])
        finally:
            self._lock.release()

    def _add(self, kind: str, origin: str, lines: list[str]) -> None:
        if not lines:
            return
        now = time.time()
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1000):03}"
        where = origin if kind == "stdout" else f"{origin} {kind}"
        told = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
        self._log.append("".join(f"{at} [{where}] {line}\n" for line in told))


_RUN: ContextVar[RunOutput | None] = ContextVar("harness_run_output", default=None)
_RECORD = logging.Formatter("%(message)s")


class Keeping:
    """Keep what is printed by this task, and by what it begins, in the log of a run.

    What is printed when this is left is still kept, but not at once where it has no end.

    Args:
        store: The journal of the run.
        run_id: The run.
        executor: Who serves it.
    """

    # Not a generator: it stands around each hop of each run.
    __slots__ = ("_output",)

    def __init__(self, store: Path, run_id: str, executor: str) -> None:
        self._output = RunOutput(RunLog(store, run_id), executor)

    def __enter__(self) -> None:
        # Never set back: it is in the context of one task, which serves nothing else.
        _RUN.set(self._output)
        ORIGIN.set("")

    def __exit__(self, *_: object) -> None:
        self._output.close()


def is_kept() -> bool:
    """Whether what is printed now belongs to a run."""
    return _RUN.get() is not None


@contextmanager
def of_no_run() -> Iterator[None]:
    """What begins in here serves no run in particular, as the thread of a pool."""
    token = _RUN.set(None)
    try:
        yield
    finally:
        _RUN.reset(token)


class Tap:
    """A stream that keeps what is printed for a run, and passes it on.

    Args:
        stream: Where it goes otherwise.
        name: ``"stdout"`` or ``"stderr"``.
    """

    def __init__(self, stream: IO[str], name: str) -> None:
        self.stream = stream
        self._name = name

    def write(self, text: str) -> int:
        run = _RUN.get()
        if run is not None and isinstance(text, str):
            run.write(self._name, text)
            if _terminal_taken:
                return len(text)
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (getattr, (sys, self._name))


_terminal_taken = False


def is_terminal_taken() -> bool:
    """Whether what runs print goes to their logs alone."""
    return _terminal_taken


@contextmanager
def terminal_taken() -> Iterator[None]:
    """In here stdout is the command's: what runs print is kept in their logs alone."""
    global _terminal_taken
    before, _terminal_taken = _terminal_taken, True
    try:
        yield
    finally:
        _terminal_taken = before


class Unhandled(logging.Handler):
    """Takes what is logged where no handler is configured, in place of `logging.lastResort`."""

    def __init__(self, before: logging.Handler | None) -> None:
        super().__init__(logging.INFO)
        self._before = before

    def emit(self, record: logging.LogRecord) -> None:
        run = _RUN.get()
        if run is not None:
            try:
                run.record(record)
            except Exception:  # noqa: BLE001 - a message that does not fit its arguments, say
                self.handleError(record)
        elif self._before is not None and record.levelno >= self._before.level:
            self._before.handle(record)
