"""Locks that die with their owner: one command at a time works on a store."""

import asyncio
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import IO, TypeVar

from harness_actors.errors import StoreError, StoreInUseError
from harness_actors.stores.private import OWN, SHOWN_FOLDER, tighten
from harness_actors.stores.users import name_of, user_of

T = TypeVar("T")

_held: dict[Path, IO[bytes]] = {}
"""The locks of this process. A lock belongs to the process, so taking one twice is no
conflict, and it is kept until it is released or the process ends."""

_changing = Lock()

ORDERED_WITHIN_S = 3.0
"""A command that answers, pauses or cancels holds a lock for no longer, but for many runs."""
LOOK_S = 0.05

_LONGEST = 32
_OURS = re.compile(rb"\d{0,20}")


def hold(path: Path) -> None:
    """Lock a path for this process.

    Args:
        path: What is to be locked; the lock itself is the file beside it with ``.lock``
            at the end, which stays: removing it would let two commands lock two files of
            one name.

    Raises:
        StoreInUseError: Another process holds it; names its process id.
        StoreError: The file of that name is none of our locks; it is left as it is.
        OSError: The lock file cannot be made.
    """
    path = path.resolve()
    with _changing:
        if path not in _held:
            _held[path] = _locked(path)


async def when_free(take: Callable[[], T], *, wait_s: float = ORDERED_WITHIN_S) -> T:
    """Take a store when no other process holds it; the event loop goes on meanwhile.

    Args:
        take: Locks it by `hold`, with what belongs to that; called until it is not refused.
        wait_s: How long to wait, in seconds.

    Returns:
        What `take` does.

    Raises:
        StoreInUseError: Another process holds it still; or as `take`.
    """
    now = asyncio.get_running_loop().time
    deadline = now() + wait_s
    while True:
        try:
            return take()
        except StoreInUseError:
            if now() >= deadline:
                raise
        await asyncio.sleep(LOOK_S)


def _locked(path: Path) -> IO[bytes]:
    path.parent.mkdir(SHOWN_FOLDER, parents=True, exist_ok=True)
    place = lock_of(path)
    # Whoever may open it may also lock it, if only for reading.
    file = os.fdopen(
        os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, OWN), "a+b"
    )
    file.seek(0)
    # Of ours there is a process id in it, or nothing. `poetry.lock` is somebody else's.
    if _OURS.fullmatch(file.read(_LONGEST)) is None:
        file.close()
        problem = (
            f"its lock would be {place.name!r}, but that file is none of ours; "
            "move it away or take another place"
        )
        raise StoreError(str(path), problem)
    tighten(place, OWN)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as busy:
        file.seek(0)
        noted = file.read(_LONGEST).decode(errors="replace").strip() or "unknown"
        file.close()
        raise StoreInUseError(str(path), _problem(place, noted)) from busy
    file.truncate(0)
    file.write(str(os.getpid()).encode())
    file.flush()
    return file


def _problem(place: Path, noted: str) -> str:
    """Who has the lock, by the kernel: what is noted in it may be of an earlier process."""
    holder = holder_of_lock(place)
    user = None if holder is None else user_of(holder)
    if user in (None, 0, os.geteuid()):
        pid = noted if holder is None else holder
        return f"the process {pid} works on it; wait for it or stop it, or take another place"
    return (
        f"the process {holder} of {name_of(user)} holds its lock; have it ended, or remove "
        f"{place.name!r}, or take another place"
    )


def holder_of_lock(place: Path) -> int | None:
    """The process that has locked a lock file, for which nothing is locked; None where none has.

    That of the namespace around, where it is in another.
    """
    try:
        file = place.stat()
        held = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    # proc(5): "1: FLOCK ADVISORY WRITE 4711 08:01:2147 0 EOF"; devices of some file
    # systems read otherwise there than in `stat`, so the inode has to do.
    for line in held:
        fields = line.split()
        if fields[1:2] == ["FLOCK"] and fields[5].rpartition(":")[2] == str(file.st_ino):
            pid = int(fields[4])
            return pid if pid > 0 else os.getppid()
    return None


def lock_of(path: Path) -> Path:
    """The lock file of a path."""
    return path.with_name(path.name + ".lock")


def is_held(path: Path) -> bool:
    """Whether this process holds the lock."""
    return path.resolve() in _held


def check_held(path: Path) -> None:
    """Refuse to go on where the lock keeps nobody out any more.

    Another command would lock another file of that name, and work in the same place.

    Raises:
        StoreError: The lock file was removed, moved or replaced since it was locked.
    """
    path = path.resolve()
    file, place = _held[path], lock_of(path)
    try:
        stands = os.path.samestat(os.fstat(file.fileno()), place.stat())
    except (FileNotFoundError, NotADirectoryError):
        stands = False
    if not stands:
        lost = place if place.parent.exists() else place.parent
        problem = (
            f"{str(lost)!r} was removed or moved away while this command worked there, so nothing "
            "more is written; the same command begins anew, and goes on where it is back"
        )
        raise StoreError(str(path), problem)


def release(path: Path) -> None:
    """Give a lock back; nothing happens where this process does not hold it."""
    with _changing:
        file = _held.pop(path.resolve(), None)
    if file is not None:
        file.close()
