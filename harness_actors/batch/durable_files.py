"""Files of a run directory, written so that a crash or a power cut leaves them whole."""

import glob
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from secrets import token_hex

from harness_actors.stores.private import SHOWN

Sync = Callable[[int], None]
"""Returns when what was written to an open file, or into a folder, is on the disk."""


def write_atomically(path: Path, parts: Iterable[bytes], *, sync: Sync = os.fsync) -> None:
    """Replace a file so that at any time it is the old one or the new one.

    Raises:
        OSError: The disk is full or does not let us; the old one stands.
    """
    # A name that nobody else has: what is there already may be somebody else's.
    beside = path.with_name(f"{_unfinished(path)}{token_hex(4)}.new")
    try:
        with open(beside, "xb", opener=_shown) as file:
            file.writelines(parts)
            file.flush()
            sync(file.fileno())
        beside.replace(path)
    except OSError:
        # On a full disk, half of a file takes what little room there is.
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path, sync)


def clear_unfinished(path: Path) -> None:
    """Remove what a process left that was killed while it replaced the file."""
    for beside in path.parent.glob(f"{glob.escape(_unfinished(path))}{8 * '[0-9a-f]'}.new"):
        beside.unlink(missing_ok=True)


def _unfinished(path: Path) -> str:
    return f".{path.name}.harness-"


def append(path: Path, lines: bytes, *, sync: Sync = os.fsync) -> None:
    """Add to the end of a file, which is made where there is none.

    Raises:
        OSError: It could not be written; the file is as it was before.
    """
    # Unbuffered: a buffer would try again, when it is closed, what a full disk refused.
    with open(path, "ab", buffering=0, opener=_shown) as file:
        before = file.tell()
        try:
            left = memoryview(lines)
            while left:
                left = left[file.write(left) :]
            sync(file.fileno())
            if before == 0:
                # It may have been made just now, and its name be lost with the power.
                _sync_folder(path, sync)
        except OSError:
            # A full disk takes a part of it: what follows must not join a torn line.
            file.truncate(before)
            raise


def _shown(path: str, flags: int) -> int:
    return os.open(path, flags, SHOWN)


def _sync_folder(path: Path, sync: Sync) -> None:
    """Bring the name of a file to the disk."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        sync(folder)
    finally:
        os.close(folder)
