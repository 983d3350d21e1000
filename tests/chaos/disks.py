"""Places that become full: a small file system, or a limit on the size of files."""

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.chaos.command import BatchCommand

SMALL_BYTES = 64 << 20
LEFT_BYTES, LEFT_BYTES_PER_RUN = 1 << 20, 16 << 10
"""What a batch gets before the disk is full: enough to begin, not enough to end."""
PAGES = 100
"""What a journal gets before it is full, in pages of 4 KB."""
LIMITED_ROLES = ("coordinator",)
FULL = Path(__file__).parent / "full"


class Place(Protocol):
    """Where a run directory becomes full."""

    @property
    def words(self) -> Sequence[str]:
        """One of these is in what the command says: the cause."""
        ...

    @property
    def run_dir(self) -> Path: ...

    async def start(self, command: BatchCommand) -> None:
        """Start the command so that it will find no room."""
        ...

    def make_room(self) -> None: ...


class FullJournal:
    """SQLite says that the journal is full; works everywhere."""

    words = ("SQLITE_FULL",)

    def __init__(self, folder: Path) -> None:
        self.run_dir = folder / "run"

    async def start(self, command: BatchCommand) -> None:
        inherited = os.environ.get("PYTHONPATH")
        path = os.pathsep.join([str(FULL), *([inherited] if inherited else [])])
        command.start(PYTHONPATH=path, CHAOS_MAX_PAGES=str(PAGES))

    def make_room(self) -> None:
        """The next command is not limited."""


class SmallDisk:
    """A file system of some megabytes, nearly all of which is taken.

    Args:
        mounted: Its folder.
    """

    words = ("full", "No space left")

    def __init__(self, mounted: Path) -> None:
        self.run_dir = mounted / "run"
        self._ballast = mounted / "ballast"

    async def start(self, command: BatchCommand) -> None:
        disk = os.statvfs(self._ballast.parent)
        with self._ballast.open("wb") as file:
            os.posix_fallocate(
                file.fileno(), 0, disk.f_bavail * disk.f_frsize - left_bytes(command)
            )
        command.start()

    def make_room(self) -> None:
        self._ballast.unlink()


class LimitedFiles:
    """No file of the coordinator may grow beyond a size: the same without any rights.

    SQLite takes it for a fault of the disk, for it is not told that there is no room.
    """

    words = ("the disk failed", "File too large")

    def __init__(self, folder: Path) -> None:
        self.run_dir = folder / "run"

    async def start(self, command: BatchCommand) -> None:
        command.start()
        while not (marks := [m for m in command.living() if m.role in LIMITED_ROLES]):
            if command.has_ended:
                return
            await asyncio.sleep(0.01)
        most = left_bytes(command)
        for mark in marks:
            resource.prlimit(mark.pid, resource.RLIMIT_FSIZE, (most, most))

    def make_room(self) -> None:
        """The next coordinator is not limited."""


def left_bytes(command: BatchCommand) -> int:
    """The room that a batch gets."""
    return LEFT_BYTES + LEFT_BYTES_PER_RUN * len(command.plans)


def inside_small_disk(mounted: Path, command: Sequence[str]) -> list[str]:
    """A command line that runs another where a folder is a small file system, for it alone."""
    mount = f'mount -t tmpfs -o size={SMALL_BYTES} tmpfs "$0" && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(mounted), *command]


def can_mount(folder: Path) -> bool:
    """Whether this machine lets us have a small file system in a folder."""
    probe = inside_small_disk(folder, [sys.executable, "-c", ""])
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
