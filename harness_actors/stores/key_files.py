"""Locks of resource keys as files beside a journal, for all processes that serve its runs.

The rule:

- A key of a tree has a file of its own, named by the hash of both: no two keys share one.
- It is there only while somebody holds it. Who lets go of it and has it alone removes it, under
  its lock; whoever locks one that was removed meanwhile looks again.
- The kernel frees it when its holder is gone. What a death leaves behind is an empty file that
  nobody has locked, which the next process to come here removes.
"""

import fcntl
import os
import re
import weakref
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from harness_actors.errors import ToolError
from harness_actors.stores.private import FOLDER, OWN, OWN_FOLDER, tighten

_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9a-f]{32}")


def key_files_of(store: Path) -> Path:
    """The folder with the locks of a journal; there is none where no tree has needed one."""
    store = store.resolve()
    return store.with_name(f"{store.name}.locks")


class KeyFiles:
    """The keys that calls of a journal's runs hold, whichever process makes them.

    Args:
        store: The journal.
    """

    def __init__(self, store: Path) -> None:
        self._path = key_files_of(store)
        self._folder: _Folder | None = None

    def take(self, root: str, key: str, *, reads: bool) -> "HeldFile | None":
        """Lock a key of a tree at once, or not at all.

        Args:
            root: The run at the top of the tree.
            key: The key.
            reads: Share it with others that read.

        Returns:
            What is held; None where somebody else holds it.

        Raises:
            ToolError: Nothing can be locked here.
        """
        try:
            folder = self._standing()
            return _locked(folder, _name(root, key), fcntl.LOCK_SH if reads else fcntl.LOCK_EX)
        except OSError as error:
            raise ToolError(
                f"its resource keys cannot be locked: {error.strerror or error} in the folder "
                f"{self._path.name!r} beside the journal. Make it a folder that this user may "
                "write, on a disk with room"
            ) from error

    def _standing(self) -> "_Folder":
        """The folder, open, made where it is missing."""
        if self._folder is None or not self._folder.is_at(self._path):
            # Not its parents: a run directory that was removed must not come back.
            with suppress(FileExistsError):
                self._path.mkdir(OWN_FOLDER)
            self._folder = _Folder(self._path)
            tighten(self._path, OWN_FOLDER)
            _sweep(self._folder)
        return self._folder


class _Folder:
    """A folder that stays open as long as somebody knows it, wherever it is moved."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, FOLDER)
        weakref.finalize(self, os.close, self.descriptor).atexit = False
        self._id = os.fstat(self.descriptor)

    def is_at(self, path: Path) -> bool:
        try:
            return os.path.samestat(self._id, os.lstat(path))
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A key that is held."""

    _folder: _Folder
    _name: str
    _file: int

    def release(self) -> None:
        """Let go of it."""
        # A file that is removed is nobody's, also where a process that a tool has forked has it
        # open. Where others read, or the disk fails, closing it is all that can be done.
        with suppress(OSError):
            # Of several who read, the last one has it alone. In between it is nobody's, so that
            # another one may have removed it, and a third made it anew.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._file).st_nlink:
                os.unlink(self._name, dir_fd=self._folder.descriptor)
        os.close(self._file)


def _locked(folder: _Folder, name: str, how: int) -> HeldFile | None:
    while True:
        file = os.open(name, _FILE | os.O_CREAT, OWN, dir_fd=folder.descriptor)
        held = False
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            if held := os.fstat(file).st_nlink > 0:
                return HeldFile(folder, name, file)
        except BlockingIOError:
            return None
        finally:
            if not held:
                os.close(file)


def _sweep(folder: _Folder) -> None:
    """Remove what the dead have left behind."""
    for name in filter(_NAME.fullmatch, os.listdir(folder.descriptor)):
        with suppress(OSError):
            file = os.open(name, _FILE, dir_fd=folder.descriptor)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
            else:
                HeldFile(folder, name, file).release()


def _name(root: str, key: str) -> str:
    text = f"{root}\0{key}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).hexdigest()
