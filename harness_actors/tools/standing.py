"""Whether the folder of a run is still the one that the run began to work in."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from harness_actors.errors import BadInputError
from harness_actors.records import FolderId


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder that must stay at its path; see `watch_workspace`.

    Attributes:
        path: Where it was found.
        id: What it is known by.
    """

    path: str
    id: FolderId

    def check(self) -> None:
        """Look at it, in some 2 µs.

        Raises:
            BadInputError: It was removed, moved or replaced.
        """
        try:
            # Not through a symlink, even one that leads to the folder: it can be turned.
            now = os.lstat(self.path)
        except OSError as error:
            raise _unseen(self.path, error) from None
        if stat.S_ISLNK(now.st_mode):
            raise _taken_away(self.path, "a symlink was put in the place of the folder")
        if FolderId.of(now) != self.id:
            raise _taken_away(self.path, "another one was put in the place of the folder")


def watch_workspace(path: Path) -> WatchedFolder:
    """What tells that a folder is no longer the one that is at its path now.

    A process that is in a folder stays in it when that is removed or moved, and all that it
    does there is lost to whoever looks at the path.

    Args:
        path: An existing folder, by a path without symlinks.

    Raises:
        BadInputError: It is gone already, or a symlink is on the way to it.
    """
    handle = open_straight(path)
    try:
        return WatchedFolder(str(path), FolderId.of(os.fstat(handle)))
    finally:
        os.close(handle)


def open_straight(path: Path) -> int:
    """The folder of a run, opened by a path on which no symlink may be.

    The path was without any when the run was given it: one that is there now was put there.

    Raises:
        BadInputError: It is gone, cannot be opened, or a symlink is on the way to it.
    """
    name = str(path)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if os.path.islink(name):
            raise _taken_away(name, "a symlink was put in the place of the folder") from None
        raise _unseen(name, error) from None
    # What was opened is asked where it is: the path itself may lead elsewhere by now.
    place = os.readlink(f"/proc/self/fd/{handle}")
    if place != name:
        os.close(handle)
        raise _taken_away(name, f"symlinks lead to {place!r} instead of the folder")
    return handle


def _unseen(name: str, error: OSError) -> BadInputError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return _taken_away(name, "the folder was removed or moved away")
    return BadInputError(name, (f"the workspace cannot be seen: {error.strerror}",))


def _taken_away(name: str, what: str) -> BadInputError:
    problem = (
        f"{what} that the run works in, so it cannot go on; begin it anew, in a "
        "batch with --retry-failed"
    )
    return BadInputError(name, (problem,))
