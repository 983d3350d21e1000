"""Files and folders that nobody but their user reads or changes, whatever the umask says."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWN = 0o600
OWN_FOLDER = 0o700
SHOWN, SHOWN_FOLDER = 0o644, 0o755
"""What others may read where the umask lets them; nobody else writes."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder beside a journal is opened: a link there was put by whoever made the journal, and
leads wherever they like."""


@contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """A folder beside a journal, open.

    Raises:
        OSError: There is none, or something else, such as a link.
    """
    folder = os.open(path, FOLDER)
    try:
        yield folder
    finally:
        os.close(folder)


_OURS = ("runs", "ray_auth_token", "logs", ".doctor-")
"""How the names begin of what we keep in a folder of our own."""


def make_own_folder(folder: Path) -> None:
    """Make a folder for this user alone, and close one that was open to others before.

    One that has something else in it was not made for us, and stays as it is.

    Raises:
        OSError: It cannot be made.
    """
    if not folder.exists():
        for missing in [one for one in reversed([folder, *folder.parents]) if not one.exists()]:
            missing.mkdir(OWN_FOLDER, exist_ok=True)
    if all(name.startswith(_OURS) for name in os.listdir(folder)):
        tighten(folder, OWN_FOLDER)


def make_own_file(path: Path, *beside: Path) -> None:
    """Make an empty file for this user alone; close it where it was open to others before.

    It is not opened where it is there: SQLite would lose its locks when it is closed.

    Args:
        path: The file.
        beside: Others that are closed where they are there.

    Raises:
        OSError: It cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWN))
    for one in (path, *beside):
        tighten(one, OWN)


def tighten(path: Path, mode: int) -> None:
    """Take from others what they may do with what is this user's."""
    with suppress(OSError):
        state = path.stat()
        if state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) & ~mode:
            path.chmod(stat.S_IMODE(state.st_mode) & mode)
