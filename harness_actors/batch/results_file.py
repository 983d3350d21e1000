"""`results.jsonl`: a finished task a line, on disk before anybody is told."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness_actors.batch.outcomes import TaskOutcome, decode_outcome, encode_outcome
from harness_actors.errors import BadInputError, StoreError
from harness_actors.messages import encode_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """What is remembered of a line: enough to tell whether its task is done."""

    task_hash: str
    attempt: int
    ok: bool
    cost_usd: float


class ResultsFile:
    """The results of a run directory; only the owner of its lock opens them.

    A task that was run again, or that was changed, has a later line that takes the
    place of the earlier one; `compact` leaves only the later.

    Attributes:
        lines: The newest line of each task, by its id.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, cut or complete a torn last line, and read what is done.

        Raises:
            BadInputError: A line in the middle is none of ours.
            StoreError: The file cannot be read or written.
        """
        self.path = path
        self.lines: dict[str, ResultLine] = {}
        self._superseded = False
        self._pending: list[bytes] = []
        self._failure: OSError | None = None
        self._writing = asyncio.Lock()
        try:
            heal(path)
            for outcome in read_outcomes(path):
                self._remember(outcome)
            self.compact()
        except OSError as error:
            raise store_error(path, error) from error

    async def append(self, outcome: TaskOutcome) -> None:
        """Write a line and wait until it is on disk, together with others that wait.

        Raises:
            StoreError: It could not be written; the file is as it was before.
        """
        self._pending.append(encode_json(encode_outcome(outcome)) + b"\n")
        async with self._writing:
            # Who waited for the lock finds its line written, or lost, by the one before.
            lines, self._pending = self._pending, []
            if lines and self._failure is None:
                try:
                    await asyncio.to_thread(_append, self.path, b"".join(lines))
                except OSError as error:
                    self._failure = error
        if self._failure is not None:
            raise store_error(self.path, self._failure) from self._failure
        self._remember(outcome)

    def compact(self) -> None:
        """Leave only the newest line of each task; does nothing where that is so already.

        Raises:
            StoreError: It could not be written; the file is as it was before.
        """
        if not self._superseded:
            return
        try:
            self._compact()
        except OSError as error:
            raise store_error(self.path, error) from error

    def _compact(self) -> None:
        newest: dict[str, int] = {}
        for number, (name, _) in enumerate(_raw_lines(self.path)):
            newest[name] = number
        kept = (
            line
            for number, (name, line) in enumerate(_raw_lines(self.path))
            if newest[name] == number
        )
        write_atomically(self.path, kept)
        self._superseded = False

    def _remember(self, outcome: TaskOutcome) -> None:
        self._superseded |= outcome.id in self.lines
        self.lines[outcome.id] = ResultLine(
            task_hash=outcome.task_hash,
            attempt=outcome.attempt,
            ok=outcome.ok,
            cost_usd=outcome.usage.cost_usd,
        )


def store_error(path: Path, error: OSError) -> StoreError:
    """What the file system said of a file of the run directory, and what to do about it."""
    problem = f"{error.strerror or error}; make room or fix its rights, then run it again"
    return StoreError(str(path), problem)


def read_outcomes(path: Path) -> Iterator[TaskOutcome]:
    """The outcomes of a results file, one by one; none where there is no file.

    Raises:
        BadInputError: A line is none of ours.
    """
    for number, plain in _parsed(path):
        try:
            yield decode_outcome(plain)
        except (KeyError, TypeError) as error:
            raise _not_ours(path, number) from error


def heal(path: Path) -> None:
    """Cut a torn last line, or complete one that lacks only its end.

    A line that was being written when its process died is not valid JSON unless all
    of it but the line feed is there: it is one object.
    """
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        start, tail = _last_line(file, end)
        if not tail:
            return
        if not _is_object(tail):
            file.truncate(start)
        elif not tail.endswith(b"\n"):
            file.seek(end)
            file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def write_atomically(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file so that at any time it is the old one or the new one.

    Raises:
        OSError: The disk is full or does not let us; the old one stands.
    """
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        # On a full disk, half of a file takes what little room there is.
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _append(path: Path, lines: bytes) -> None:
    # Unbuffered: a buffer would try again, when it is closed, what a full disk refused.
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            left = memoryview(lines)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            # A full disk takes a part of it: what follows must not join a torn line.
            file.truncate(before)
            raise


def _last_line(file: Any, end: int) -> tuple[int, bytes]:
    """Where the last line starts, and its bytes with its line feed if it has one."""
    size, tail = 1 << 16, b""
    while True:
        start = max(0, end - size)
        file.seek(start)
        tail = file.read(end - start)
        cut = tail.rstrip(b"\n").rfind(b"\n") + 1
        if cut or start == 0:
            return start + cut, tail[cut:]
        size *= 4


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _raw_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        for line in filter(bytes.strip, file):
            yield orjson.loads(line)["id"], line


def _parsed(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            if not _is_object(line):
                raise _not_ours(path, number)
            yield number, orjson.loads(line)


def _not_ours(path: Path, number: int) -> BadInputError:
    problem = (
        f"line {number}: not a result of a batch; remove the line or take another run directory"
    )
    return BadInputError(str(path), (problem,))
