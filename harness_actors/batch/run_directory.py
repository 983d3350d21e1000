"""A run directory: the lock, the results, the journal and the workspaces of one batch."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from harness_actors.batch.checks import clear_copies
from harness_actors.batch.durable_files import clear_unfinished, write_atomically
from harness_actors.batch.hiding import WORKSPACES, Hidden, hidden_in, hiding
from harness_actors.batch.results_file import ResultsFile, store_error, unreadable
from harness_actors.batch.setups_file import SetupsFile
from harness_actors.batch.torn_line import as_object
from harness_actors.errors import BadInputError, StoreError, StoreInUseError
from harness_actors.messages import encode_json
from harness_actors.records import RunHeading
from harness_actors.stores import JournalReader
from harness_actors.stores.lock import check_held, hold, lock_of, release, when_free
from harness_actors.stores.schema import HEADER_BYTES, begins_a_journal


class Runs(Protocol):
    """What is read of a journal while another process may write it."""

    def headings(self) -> list[RunHeading]: ...


SUMMARY_FIELDS = frozenset(("ending", "command"))
"""By these a summary is known to be ours, of any version."""

_in_use: set[Path] = set()
"""Run directories that this process works on: a lock keeps out other processes only."""


class RunDirectory:
    """A folder that one command works on at a time.

    Used as a context manager; leaving it gives the lock back. ``async with`` waits for a command
    that only answers a run of it; ``with`` is refused at once.

    Attributes:
        path: The folder, absolute.
        results: What is done; read when the lock is held.
        setups: What it was done with.

    Raises:
        BadInputError: ``$HARNESS_HIDE_WORKSPACES`` says something that is not known.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._hide = hiding()
        self.results: ResultsFile
        self.setups: SetupsFile

    @property
    def store(self) -> Path:
        """The journal."""
        return self.path / "runs.db"

    @property
    def is_begun(self) -> bool:
        """An earlier command has left something here to go on from."""
        return any(path.exists() for path in (self.store, self.results_path, self.setups_path))

    @property
    def has_runs(self) -> bool:
        """There is a journal."""
        return self.store.exists() and self.store.stat().st_size > 0

    @property
    def setups_path(self) -> Path:
        return self.path / "setups.json"

    @property
    def results_path(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def summary_path(self) -> Path:
        return self.path / "summary.json"

    @property
    def checks_path(self) -> Path:
        """Where checks have their copies, each for as long as it runs."""
        return self.path / "checks"

    def headings(self) -> list[RunHeading]:
        """The runs of the journal.

        Raises:
            StoreError: As `journal`.
        """
        journal = self.journal()
        return [] if journal is None else journal.headings()

    def journal(self) -> Runs | None:
        """The journal for reading; None where it is not made.

        Raises:
            StoreError: It is none, or cannot be read.
        """
        if not self.has_runs:
            return None
        return JournalReader(self.store)

    def workspace(self, run_id: str) -> Path:
        """The folder that a run works in; kept when it has ended."""
        return self.workspaces_path / run_id

    @property
    def workspaces_path(self) -> Path:
        return self.path / WORKSPACES

    @property
    def hidden(self) -> Hidden:
        """What the commands of its runs are not to see."""
        return hidden_in(self.path, self._hide)

    def __enter__(self) -> Self:
        """Make the folder, lock it, and read its results.

        Raises:
            BadInputError: It is not a folder, or something in it has a name of ours and is none of
                ours, or cannot be read; nothing in it was changed.
            StoreInUseError: Another command works on it.
            RunFileError: The results cannot be written.
        """
        self._check_use()
        self._check_journal()
        self._check_workspaces()
        was_ours = lock_of(self.store).exists()
        try:
            # The journal's own lock, so that nobody resumes a run of it meanwhile.
            hold(self.store)
        except OSError as error:
            problem = f"cannot be used as a run directory: {error.strerror or error}"
            raise BadInputError(str(self.path), (problem,)) from error
        _in_use.add(self.path)
        try:
            self._check_summary()
            self.setups = SetupsFile(self.setups_path)
            self.results = ResultsFile(self.results_path, self.check_standing)
            for path in (self.summary_path, self.setups_path):
                clear_unfinished(path)
            # Those of a command that was killed.
            clear_copies(self.checks_path)
        except BaseException as error:
            if isinstance(error, BadInputError) and not was_ours:
                # Who waits for this lock meanwhile is refused for the same.
                lock_of(self.store).unlink(missing_ok=True)
            self._unlock()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            # Where the folder was taken away, another command may work in its place by now.
            with suppress(StoreError):
                self.check_standing()
                clear_copies(self.checks_path)
            with suppress(StoreError) if error is not None else nullcontext():
                self.results.compact()
        finally:
            self._unlock()

    async def __aenter__(self) -> Self:
        """As ``with``, when no other process has the lock: who only answers has it for a moment.

        Raises:
            StoreInUseError: Another command works on it still, 3 s later.
        """
        # This process is not waited for.
        self._check_use()
        return await when_free(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def check_standing(self) -> None:
        """Refuse to go on where the folder is no longer the one that was locked.

        Raises:
            StoreError: It was removed, moved or replaced.
        """
        check_held(self.store)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace `summary.json`.

        Raises:
            StoreError: It could not be written; the one of an earlier command stands.
        """
        self.check_standing()
        text = encode_json(summary, indent=True) + b"\n"
        try:
            write_atomically(self.summary_path, [text])
        except OSError as error:
            raise store_error(self.summary_path, error) from error

    def _check_use(self) -> None:
        """Refuse to work here twice in one process."""
        if self.path in _in_use:
            problem = "this process works on it already; wait for that or take another directory"
            raise StoreInUseError(str(self.path), problem)

    def _check_journal(self) -> None:
        """Refuse what has the journal's name and is not a journal, before it is locked."""
        try:
            with self.store.open("rb") as file:
                begins = file.read(HEADER_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise unreadable(self.store, error) from error
        if begins and not begins_a_journal(begins):
            problem = "is not a journal; move it away or take another run directory"
            raise BadInputError(str(self.store), (problem,))

    def _check_workspaces(self) -> None:
        """Refuse a file where the folders of the runs are to be."""
        path = self.workspaces_path
        if path.exists() and not path.is_dir():
            problem = "is not a folder; move it away or take another run directory"
            raise BadInputError(str(path), (problem,))

    def _check_summary(self) -> None:
        """Refuse to replace a summary that no batch has written."""
        path = self.summary_path
        try:
            text = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise unreadable(path, error) from error
        plain = as_object(text) or {}
        if text and not (plain.keys() >= SUMMARY_FIELDS):
            problem = "is no summary of a batch; move it away or take another run directory"
            raise BadInputError(str(path), (problem,))

    def _unlock(self) -> None:
        _in_use.discard(self.path)
        release(self.store)
