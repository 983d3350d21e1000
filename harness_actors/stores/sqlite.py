"""The journal in an SQLite file, the answer to the `Journal` port that is shipped."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.records import Entry
from harness_actors.stores.commit import Committer
from harness_actors.stores.connection import open_for_reading, open_journal
from harness_actors.stores.faults import VALUE_ERRORS, damage, store_error
from harness_actors.stores.marks import LOG_BYTES, check_marks, leave_log, move_log
from harness_actors.stores.queries import load_removed_cost
from harness_actors.stores.readable import ReadableJournal, T
from harness_actors.stores.room import room_for
from harness_actors.stores.standing import FileId, StandingFiles, out_of_place
from harness_actors.stores.traceless import size_of
from harness_actors.stores.transactions import transaction

BUSY_S = 10.0


class SqliteJournal(ReadableJournal):
    """A journal in one file, with its write-ahead log beside it while it is open.

    What `commit` returned for is on the disk: it survives the death of the process and
    of the machine. Any number of processes may read the file meanwhile. Not for network
    file systems, whose locks SQLite cannot trust.

    It stays with the file that it opened: once that is no longer at its path, nothing more
    is written or read, for it would be lost, or be that of another journal.

    Two threads may use it at once: one that commits and one that reads. More wait for
    each other.

    Args:
        path: The file; it and its folder are made if they are missing.
        busy_s: How long to wait for other processes that lock it, in seconds.
        file: Which file it must be, and nothing is made then; None for any.

    Raises:
        StoreError: The file is not a journal, of a version that is not known, damaged,
            locked, or cannot be made; it is left as it is, byte for byte.
    """

    def __init__(
        self, path: str | Path, *, busy_s: float = BUSY_S, file: FileId | None = None
    ) -> None:
        self._path = Path(path)
        self._busy_s = busy_s
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._closed = False
        with self._errors():
            # Looked at before SQLite opens it, too, so that it is not changed in between.
            found = FileId.of(self._path)
            if file is not None and found != file:
                raise out_of_place(self._path, file)
            self._writer = open_journal(self._path, busy_s=busy_s)
            try:
                self._reader = open_for_reading(self._path, busy_s=busy_s)
                self._files = StandingFiles(self._path, found)
            except BaseException:
                self._writer.close()
                raise
        self._committer = Committer(self._path, self._writer)
        self._log_bytes = LOG_BYTES

    @property
    def path(self) -> Path:
        return self._path

    def check_standing(self) -> None:
        """Refuse to go on where the journal, or what SQLite has beside it, was taken away.

        Raises:
            StoreError: It was removed, moved or replaced.
        """
        with self._faults():
            self._files.check()

    def begin_term(self) -> int:
        """Begin the next term; commits of earlier ones are refused from here on."""
        with self._writing():
            return self._committer.begin_term()

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        """Write entries in one transaction: all of them or, if one fails, none.

        Returns:
            The journal position of each entry. Those of `RunAdded` and `RunChanged` are
            their own; another entry has the position of the one before it.

        Raises:
            StaleTermError: `term` is not the newest.
            StoreError: Nothing was written, or only where nobody will read it; says why.
        """
        with self._writing():
            return self._committer.commit(term, entries)

    def forget_processes(self, term: int) -> None:
        """Forget the processes of the terms before `term`: they are gone.

        Raises:
            StaleTermError: `term` is not the newest.
        """
        with self._writing():
            self._committer.forget_processes(term)

    def removed_cost_usd(self) -> float:
        """What the runs cost that were removed, see `expiry`, in US dollars."""
        return self._read(load_removed_cost)

    def close(self) -> None:
        """Move the write-ahead log into the file, unless another process reads it.

        A journal may be closed again, which does nothing.
        """
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            self._closed = True
            self._reader.close()
            # What cannot be moved now stays in the log, from where whoever opens the file
            # next reads it; the last one to close it moves it. So there is no need to wait.
            # Nor is it moved into a file that others may have replaced.
            try:
                self.check_standing()
                self._writer.execute("PRAGMA busy_timeout = 0")
                check_marks(self._path, self._writer)
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error:
                pass  # as said above
            except StoreError:
                with suppress(sqlite3.Error):
                    leave_log(self._path, self._writer)
            finally:
                self._writer.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._write_lock, self._faults():
            self._files.check_main()
            try:
                yield
            except VALUE_ERRORS as error:
                problem = f"an entry cannot be stored ({type(error).__name__}: {error})"
                raise StoreError(str(self._path), problem) from error
            # After it, too: what follows from a commit must not leave if that is nowhere.
            if (size := self._files.check()) > self._log_bytes:
                self._move_log(size)

    def _move_log(self, size: int) -> None:
        """Move the log into the file where it has become long, by its size in bytes."""
        # Written over, it is synced in half the time that one takes which grows.
        truncates = size > 2 * LOG_BYTES
        self._writer.execute("PRAGMA busy_timeout = 0")
        try:
            begins_anew = move_log(self._path, self._writer, truncate=truncates)
        except sqlite3.Error:
            # What was committed is on the disk; the next commit says what is wrong with that.
            begins_anew = False
        finally:
            self._writer.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1000)}")
        size = self._files.check()
        # One that is written over grows again only when it is as long as it was.
        self._log_bytes = max(size, LOG_BYTES) if begins_anew else size + LOG_BYTES

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        reading = transaction(self._reader, "DEFERRED")
        room = room_for(size_of(self._path))
        with self._read_lock, self._faults(), damage(self._path), reading, room:
            # After it: what was read of a journal that is nowhere is of no use to anybody.
            found = read(self._reader)
            self._files.check_main()
            return found

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Whatever SQLite or the file system say of the open file, as a `StoreError`."""
        with self._errors():
            try:
                yield
            except sqlite3.ProgrammingError:
                raise  # it was closed, which is why what was beside it is gone
            except sqlite3.Error:
                # Where the file is gone, that is why; SQLite takes it for a fault of the disk.
                self._files.check()
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise store_error(self._path, error, busy_s=self._busy_s) from error
