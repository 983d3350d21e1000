"""The journal for those who only look: lists of runs, replays, questions about one run."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.stores.connection import check_file
from harness_actors.stores.faults import damage, store_error
from harness_actors.stores.readable import ReadableJournal, T
from harness_actors.stores.sqlite import BUSY_S
from harness_actors.stores.traceless import read_traceless


class JournalReader(ReadableJournal):
    """Reads a journal's file and changes nothing: it makes no file, and takes no term.

    Works while another process writes, and sees what that one has committed; works where
    a process was killed and left its write-ahead log, without moving that into the file.
    Between two calls it holds nothing open, so it stands in nobody's way. For one thread
    at a time.

    Args:
        path: The file.
        busy_s: How long to wait for other processes that lock it, in seconds.

    Raises:
        StoreError: There is no such file, or it is not a journal, of a version that is not
            known, or damaged.
    """

    def __init__(self, path: str | Path, *, busy_s: float = BUSY_S) -> None:
        self._path = Path(path)
        self._busy_s = busy_s
        self._closed = False
        self._read(lambda connection: check_file(self._path, connection))

    @property
    def path(self) -> Path:
        return self._path

    def close(self) -> None:
        """Nothing can be read any more."""
        self._closed = True

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise StoreError(str(self._path), "this reader is closed; open another")

        def carefully(connection: sqlite3.Connection) -> T:
            with damage(self._path):
                return read(connection)

        try:
            return read_traceless(self._path, carefully, busy_s=self._busy_s)
        except FileNotFoundError as error:
            problem = "there is no such file; check the path, or $HARNESS_HOME"
            raise StoreError(str(self._path), problem) from error
        except IsADirectoryError as error:
            problem = "it is a folder; name the journal's file in it"
            raise StoreError(str(self._path), problem) from error
        except (sqlite3.Error, OSError) as error:
            raise store_error(self._path, error, busy_s=self._busy_s) from error
