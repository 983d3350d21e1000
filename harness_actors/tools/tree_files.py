"""The files and links of a tree of folders, found, read and put by name, through no symlink."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, Literal

from harness_actors.tools.scan import SKIPPED_FOLDERS, Descent, is_foreign, walk
from harness_actors.tools.stopping import check_stopped

Kind = Literal["file", "link", "folder", "other"]
PASSED_OVER = SKIPPED_FOLDERS | {
    *(".git", ".hg", ".svn"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
}
"""Names of what is no work of anybody's: caches, and what tools keep of versions."""
MOST_LEVELS = 1_000
"""How deep below the top of a tree a folder may be: going back from far below takes long."""
_TEMPORARY = re.compile(r"\.harness-[0-9a-f]{16}\.tmp")
_PIECE = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class BlockedError(OSError):
    """On the way to a file stands something that is no folder."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a path of a tree.

    Attributes:
        kind: What it is. `other` is a socket or the like, or a hard link to another user's file.
        size: Of a file, in bytes.
        mode: Its permissions.
        text: Where a link leads.
    """

    kind: Kind
    size: int = 0
    mode: int = 0
    text: str = ""

    @property
    def runs(self) -> bool:
        """It is a file that may be executed."""
        return self.kind == "file" and bool(self.mode & stat.S_IXUSR)


class Tree:
    """A tree of folders. Empty folders, and what has a name of `PASSED_OVER`, are not seen.

    Args:
        top: The folder at its top, open; it stays open.
    """

    def __init__(self, top: int) -> None:
        self._top = top

    def files(self) -> dict[str, Found]:
        """What is there but folders, by path.

        Raises:
            OSError: A folder cannot be read.
        """
        found: dict[str, Found] = {}
        for place, entries in walk(self._top, _raise):
            check_stopped()
            if entries is None:
                continue
            if len(place.names) > MOST_LEVELS:
                raise OSError(f"it has folders in folders more than {MOST_LEVELS:,} times")
            entries[:] = [one for one in entries if not is_passed_over(one.name)]
            above = "".join(f"{name}/" for name in place.names)
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    found[above + entry.name] = _found(entry.name, place.folder)
        return found

    def look(self, path: str) -> Found | None:
        """What is at a path; None for nothing.

        Raises:
            BlockedError: Something on the way is no folder.
            OSError: It cannot be seen.
        """
        try:
            with self._folder_of(path) as (folder, name):
                return _found(name, folder)
        except FileNotFoundError:
            return None

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A file, open to read.

        Raises:
            OSError: It is none, or cannot be read.
        """
        with self._folder_of(path) as (folder, name):
            handle = os.open(name, _READ, dir_fd=folder)
        with open(handle, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(f"{path!r} is no file any more")
            yield file

    def read(self, path: str) -> bytes:
        """All of a file.

        Raises:
            OSError: As `open`.
        """
        with self.open(path) as file:
            return b"".join(_pieces(file))

    def digest(self, path: str, found: Found | None) -> str:
        """What tells what is at a path from all else; two of the same have the same.

        Raises:
            OSError: It cannot be read.
        """
        if found is None:
            return "none"
        if found.kind != "file":
            return f"{found.kind} {hashlib.sha256(os.fsencode(found.text)).hexdigest()}"
        return digest_of(pieces_at(self, path), runs=found.runs)

    def put(self, path: str, data: Iterable[bytes], mode: int) -> None:
        """Put a file at a path at once, in the place of a file or a link; folders are made.

        Args:
            path: The path.
            data: What is in it.
            mode: Its permissions.

        Raises:
            BlockedError: As `look`.
            OSError: It cannot be written.
        """
        with self._folder_of(path, make=True) as (folder, name):
            fresh = _fresh(name, folder)
            handle = os.open(fresh, _CREATE, 0o600, dir_fd=folder)
            with _or_removed(fresh, folder):
                with open(handle, "wb") as file:
                    for piece in data:
                        check_stopped()
                        file.write(piece)
                    os.fchmod(handle, mode & 0o777)
                    file.flush()
                    # Else a power failure could leave an empty file under the name.
                    os.fsync(handle)
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)

    def put_link(self, path: str, text: str) -> None:
        """Put a link at a path at once; see `put`."""
        with self._folder_of(path, make=True) as (folder, name):
            fresh = _fresh(name, folder)
            os.symlink(text, fresh, dir_fd=folder)
            with _or_removed(fresh, folder):
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)

    def change_mode(self, path: str, mode: int) -> None:
        """Give a file other permissions.

        Raises:
            OSError: As `open`.
        """
        with self.open(path) as file:
            os.fchmod(file.fileno(), mode & 0o777)

    def remove(self, path: str, keeps: "Tree") -> None:
        """Remove a file or a link, and the folders above it that are empty then.

        Args:
            path: The path.
            keeps: A tree whose folders stay.

        Raises:
            OSError: It cannot be removed.
        """
        with self._folder_of(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        parts = path.split("/")[:-1]
        while parts and not keeps.has_folder("/".join(parts)):
            try:
                with self._folder_of("/".join(parts)) as (folder, name):
                    os.rmdir(name, dir_fd=folder)
            except OSError:
                # There is something else in it.
                return
            parts.pop()

    def has_folder(self, path: str) -> bool:
        """Whether a folder is there."""
        try:
            found = self.look(path)
        except OSError:
            return False
        return found is not None and found.kind == "folder"

    @contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that a path is in, open, and its name there."""
        *above, name = path.split("/")
        with closing(Descent(self._top)) as descent:
            for part in above:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descent.folder)
                try:
                    descent.enter(part)
                except NotADirectoryError as error:
                    raise BlockedError(f"{part!r} is no folder") from error
            yield descent.folder, name


def is_passed_over(name: str) -> bool:
    """Whether a name is of what is no work of anybody's."""
    return name in PASSED_OVER or _TEMPORARY.fullmatch(name) is not None


def is_same(path: str, one: tuple[Tree, Found | None], other: tuple[Tree, Found | None]) -> bool:
    """Whether at a path of two trees is the same: kind, content, and whether it may be executed.

    Raises:
        OSError: It cannot be read.
    """
    (tree, found), (other_tree, other_found) = one, other
    if found is None or other_found is None:
        return found is other_found
    if (found.kind, found.text, found.runs) != (
        other_found.kind,
        other_found.text,
        other_found.runs,
    ):
        return False
    if found.kind != "file":
        # What is neither file nor link is never said to be the same.
        return found.kind == "link"
    if found.size != other_found.size:
        return False
    with tree.open(path) as left, other_tree.open(path) as right:
        while True:
            check_stopped()
            piece = left.read(_PIECE)
            if piece != right.read(_PIECE):
                return False
            if not piece:
                return True


def digest_of(data: Iterable[bytes], *, runs: bool) -> str:
    """The digest of a file that holds something; see `Tree.digest`."""
    digest = hashlib.sha256()
    for piece in data:
        check_stopped()
        digest.update(piece)
    return f"{'program' if runs else 'file'} {digest.hexdigest()}"


def pieces_at(tree: Tree, path: str) -> Iterator[bytes]:
    """What is in a file, in pieces."""
    with tree.open(path) as file:
        yield from _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _found(name: str, folder: int) -> Found:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return Found("link", text=os.readlink(name, dir_fd=folder))
    if stat.S_ISDIR(found.st_mode):
        return Found("folder")
    if not stat.S_ISREG(found.st_mode) or is_foreign(found):
        return Found("other")
    return Found("file", found.st_size, stat.S_IMODE(found.st_mode))


def _fresh(name: str, folder: int) -> str:
    """A name for what is to come in the place of a file, the same each time, so that what a killed
    process has left does not stay."""
    fresh = f".harness-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=folder)
    return fresh


@contextmanager
def _or_removed(name: str, folder: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise


def _raise(error: OSError) -> None:
    raise error
