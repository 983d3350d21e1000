"""What shows of a process that it serves a journal, whatever the journal says of it.

A journal names the processes of its cell, so that those which a killed command left can be
ended. It is a file, which anybody may have written. So each of these processes carries a mark
besides: an empty file in memory that is named for the journal, which nobody can open in a
process but itself. What carries none is left alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from harness_actors.stores.standing import FileId

_carried: dict[Path, int] = {}


def carry(journal: Path) -> int | None:
    """Begin to carry the mark of a journal, which is there.

    Returns:
        Its handle, for processes that serve the journal with this one; None where the journal
        is not on this machine.
    """
    name = _name_of(journal)
    if name is None:
        return None
    put_down(journal)
    _carried[journal] = os.memfd_create(name, os.MFD_CLOEXEC)
    return _carried[journal]


def put_down(journal: Path) -> None:
    """Serve a journal no longer; nothing happens where its mark is not carried."""
    handle = _carried.pop(journal, None)
    if handle is not None:
        os.close(handle)


def carries(pid: int, journal: Path) -> bool:
    """Whether a process is this user's, and carries the mark of a journal."""
    name = _name_of(journal)
    return name is not None and f"/memfd:{name} (deleted)" in _handles_of(pid)


def _name_of(journal: Path) -> str | None:
    # By the file and not by its path: a copy is another journal, and one that was moved is not.
    found = FileId.of(journal)
    return None if found is None else f"harness-cell-{found.device:x}-{found.inode:x}"


def _handles_of(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        if os.stat(folder).st_uid != os.geteuid():
            return
        handles = os.listdir(folder)
    except OSError:
        return  # it ended, or is none that we may look into
    for handle in handles:
        try:
            yield os.readlink(f"{folder}/{handle}")
        except OSError:
            continue  # closed meanwhile
