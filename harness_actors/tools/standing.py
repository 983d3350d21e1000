"""Whether the folder of a run is still the one that the run began to work in."""

import os
from collections.abc import Callable
from pathlib import Path

from harness_actors.errors import BadInputError


def watch_workspace(path: Path) -> Callable[[], None]:
    """What tells that a folder is no longer the one that is at its path now.

    A process that is in a folder stays in it when that is removed or moved, and all that it
    does there is lost to whoever looks at the path.

    Args:
        path: An existing folder.

    Returns:
        A check, of some 2 µs, that raises a `BadInputError` where it was removed, moved or
        replaced.

    Raises:
        BadInputError: It is gone already.
    """
    name = str(path)
    found = _stat(name)
    device, inode = found.st_dev, found.st_ino

    def check() -> None:
        now = _stat(name)
        if now.st_ino != inode or now.st_dev != device:
            raise _taken_away(name, "another one was put in the place of the folder")

    return check


def _stat(name: str) -> os.stat_result:
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        raise _taken_away(name, "the folder was removed or moved away") from None
    except OSError as error:
        raise BadInputError(name, (f"the workspace cannot be seen: {error.strerror}",)) from error


def _taken_away(name: str, what: str) -> BadInputError:
    problem = (
        f"{what} that the run works in, so it cannot go on; begin it anew, in a "
        "batch with --retry-failed"
    )
    return BadInputError(name, (problem,))
