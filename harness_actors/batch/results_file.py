"""`results.jsonl`: a finished task a line, on disk before anybody is told."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from harness_actors.batch.durable_files import Sync, append, clear_unfinished, write_atomically
from harness_actors.batch.outcomes import TaskOutcome, Verdict, decode_outcome, encode_outcome
from harness_actors.batch.torn_line import as_object, heal, is_torn
from harness_actors.errors import BadInputError, RunFileError, StoreError
from harness_actors.messages import encode_json
from harness_actors.stores.standing import FileId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """What is remembered of a line: enough to tell whether its task is done, and how well."""

    task_hash: str
    attempt: int
    verdict: Verdict
    out_of_budget: bool
    setup: str | None = None


class ResultsFile:
    """The results of a run directory; only the owner of its lock opens them.

    A task that was run again, or that was changed, has a later line that takes the
    place of the earlier one; `compact` leaves only the later.

    Attributes:
        lines: The newest line of each task, by its id.
    """

    def __init__(
        self,
        path: Path,
        check_place: Callable[[], None] = lambda: None,
        *,
        sync: Sync = os.fsync,
    ) -> None:
        """Open the file, read what is done, and cut or complete a torn last line.

        Nothing of the file is changed before all of it is known to be ours.

        Args:
            path: The file; it is made with its first line.
            check_place: Raises a `StoreError` where the folder is not ours any more; called
                before anything is written.
            sync: Brings an open file or folder to the disk.

        Raises:
            BadInputError: A line is none of ours, or the file cannot be read.
            RunFileError: The file cannot be written.
        """
        self.path = path
        self._sync = sync
        self.lines: dict[str, ResultLine] = {}
        self._superseded = False
        self._pending: list[bytes] = []
        self._failure: StoreError | None = None
        self._check_place = check_place
        self._writing = asyncio.Lock()
        torn_at: int | None = None
        try:
            for place, outcome in _read(path):
                if outcome is None:
                    torn_at = place
                else:
                    self._remember(outcome)
        except OSError as error:
            raise unreadable(path, error) from error
        try:
            clear_unfinished(path)
            heal(path, torn_at, sync=sync)
            self._file = FileId.of(path)
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
                    await asyncio.to_thread(self._write, b"".join(lines))
                except StoreError as error:
                    self._failure = error
        if self._failure is not None:
            raise self._failure
        self._remember(outcome)

    def _write(self, lines: bytes) -> None:
        self._check_standing()
        try:
            append(self.path, lines, sync=self._sync)
            self._file = self._file or FileId.of(self.path)
        except OSError as error:
            raise store_error(self.path, error) from error

    def _check_standing(self) -> None:
        """Refuse to write where what was written before is gone."""
        self._check_place()
        if self._file is not None and FileId.of(self.path) != self._file:
            problem = (
                "it was removed or replaced while this command wrote to it; the same command "
                "writes all of it again, from the journal"
            )
            raise RunFileError(str(self.path), problem)

    def compact(self) -> None:
        """Leave only the newest line of each task; does nothing where that is so already.

        Raises:
            StoreError: It could not be written; the file is as it was before.
        """
        if not self._superseded:
            return
        self._check_standing()
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
        write_atomically(self.path, kept, sync=self._sync)
        self._file = FileId.of(self.path)
        self._superseded = False

    def _remember(self, outcome: TaskOutcome) -> None:
        self._superseded |= outcome.id in self.lines
        self.lines[outcome.id] = ResultLine(
            task_hash=outcome.task_hash,
            attempt=outcome.attempt,
            verdict=outcome.verdict,
            out_of_budget=outcome.out_of_budget,
            # One text for as many lines as there are.
            setup=None if outcome.setup is None else sys.intern(outcome.setup),
        )


def store_error(path: Path, error: OSError) -> RunFileError:
    """What the file system said of a file of the run directory, and what to do about it."""
    problem = f"{error.strerror or error}; make room or fix its rights, then run it again"
    return RunFileError(str(path), problem)


def unreadable(path: Path, error: OSError) -> BadInputError:
    """What the file system said of a file that is read before anything runs, and what to do."""
    problem = (
        f"cannot be read ({error.strerror or error}); fix its rights or move it away, or take "
        "another run directory"
    )
    return BadInputError(str(path), (problem,))


def read_outcomes(path: Path) -> Iterator[TaskOutcome]:
    """The outcomes of a results file, one by one; none where there is no file.

    A torn last line is left out.

    Raises:
        BadInputError: A line is none of ours.
    """
    return (outcome for _, outcome in _read(path) if outcome is not None)


def ok_runs(path: Path) -> set[str]:
    """The runs of a results file that ended `done`, their check passed; nothing is changed.

    Returns:
        Their ids; empty where there is no file.

    Raises:
        BadInputError: A line is none of ours, or the file cannot be read.
    """
    try:
        return {told.run_id for _, told in _read(path) if told and told.ok and told.run_id}
    except OSError as error:
        raise unreadable(path, error) from error


def _read(path: Path) -> Iterator[tuple[int, TaskOutcome | None]]:
    """Where each line begins and what it tells; None for a last one that is torn."""
    if not path.exists():
        return
    with path.open("rb") as file:
        place, torn_at = 0, None
        for number, line in enumerate(file, start=1):
            if torn_at is not None:
                raise _not_ours(path, number - 1)
            if line.strip():
                outcome = _outcome(path, number, line)
                if outcome is None:
                    torn_at = place
                else:
                    yield place, outcome
            place += len(line)
    if torn_at is not None:
        yield torn_at, None


def _outcome(path: Path, number: int, line: bytes) -> TaskOutcome | None:
    plain = as_object(line)
    if plain is None and is_torn(line, first=number == 1):
        return None
    try:
        return decode_outcome(plain or {})
    except (KeyError, TypeError) as error:
        raise _not_ours(path, number) from error


def _raw_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        for line in filter(bytes.strip, file):
            yield orjson.loads(line)["id"], line


def _not_ours(path: Path, number: int) -> BadInputError:
    problem = (
        f"line {number}: not a result of a batch; remove the line or take another run directory"
    )
    return BadInputError(str(path), (problem,))
