"""What the code of users printed: a file for each run, in a folder beside the journal.

It is for people who look for a fault. Nothing is read from it, no run waits for it, and none
fails where it cannot be written; it is not synced.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from harness_actors.stores.private import OWN, OWN_FOLDER, opened_folder

LOG_BYTES = 4 << 20
"""Most of one run; what follows is left out, with a word."""

_OVER = "… the log ends here, at its limit of {:,} bytes\n"


def log_of(store: Path, run_id: str) -> Path:
    """Where what a run printed is kept; there is no such file where it printed nothing."""
    return store.resolve().parent / "logs" / f"{quote(run_id, safe='')}.log"


def remove_logs(store: Path, run_ids: Iterable[str]) -> None:
    """Remove the logs of runs, as far as that can be done."""
    with suppress(OSError), opened_folder(log_of(store, "").parent) as folder:
        for run_id in run_ids:
            with suppress(OSError):
                os.unlink(log_of(store, run_id).name, dir_fd=folder)


class RunLog:
    """Appends to the log of a run. Several processes may, at once.

    Nothing is held open: a process serves thousands of runs, and their folder may be removed.

    Args:
        store: The journal; see `log_of`. The file is made with the first text, and its folder
            if that is missing.
        run_id: The run.
        most_bytes: The file's longest size.
    """

    def __init__(self, store: Path, run_id: str, most_bytes: int = LOG_BYTES) -> None:
        self._store = store
        self._run_id = run_id
        self._most_bytes = most_bytes
        self._over = False

    @cached_property
    def _path(self) -> Path:
        # Not before there is something to write: most runs print nothing.
        return log_of(self._store, self._run_id)

    def append(self, text: str) -> None:
        """Add lines. Where that cannot be done, they and what follows are dropped."""
        if self._over:
            return
        try:
            self._append(text.encode("utf-8", "replace"))
        except OSError:
            # A full disk, a folder that was removed or is not ours: the run goes on.
            self._over = True

    def _append(self, data: bytes) -> None:
        file = self._open()
        try:
            room = self._most_bytes - os.fstat(file).st_size
            if room < len(data):
                self._over = True
                if room <= 0:
                    return
                whole = data[:room].rpartition(b"\n")
                data = whole[0] + whole[1] + _OVER.format(self._most_bytes).encode()
                # Whoever else writes to it sees by its size that it is at its end.
                data = data.ljust(room, b"\n")
            os.write(file, data)
        finally:
            os.close(file)

    def _open(self) -> int:
        path = self._path
        try:
            return _appending(path)
        except FileNotFoundError:
            # Not its parents: a run directory that was removed must not come back.
            with suppress(FileExistsError):
                path.parent.mkdir(OWN_FOLDER)
            return _appending(path)


def _appending(path: Path) -> int:
    # A link in the place of the log leads nowhere either.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with opened_folder(path.parent) as folder:
        return os.open(path.name, flags, OWN, dir_fd=folder)
