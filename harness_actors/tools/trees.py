"""Trees of folders, copied and removed by descriptor: of any depth, and through no symlink."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from errno import ENXIO
from pathlib import Path

from harness_actors.tools.scan import FOLDER, Descent, is_foreign, walk

SENT_BYTES = 1 << 24
_BLOCK_BYTES = 512
"""What `st_blocks` counts."""

Entry = os.DirEntry[str]
CopyLink = Callable[[str, int, tuple[str, ...], int], None]
"""Given a symlink's name, its folder, the names of the way there, and the folder to make it in."""


Look = Callable[[list[Entry], int], None]
"""Given what is in a folder, and how many folders that is below the top, may take out what is to be
left out; what it raises ends the copy."""


def look_at_nothing(_entries: list[Entry], _depth: int) -> None:
    pass


def copy_tree(
    source: int,
    to: int,
    copy_link: CopyLink,
    *,
    refuse_foreign: bool,
    look: Look = look_at_nothing,
) -> None:
    """Copy what is in a folder into an empty one, with modes and times.

    Sockets, pipes and devices are left out.

    Args:
        source: The folder, open.
        to: The empty one, open.
        copy_link: Called for each symlink.
        refuse_foreign: Refuse hard links to files of other users.
        look: Called for each folder.

    Raises:
        OSError: Something cannot be read or written; it names that.
    """
    with closing(Descent(to)) as target:
        depth = 0
        for place, entries in walk(source, _raise):
            if entries is None:
                _copy_facts(place.folder, target.folder)
                # The run must be able to work in it, even if the source is read-only.
                mode = os.fstat(target.folder).st_mode
                os.fchmod(target.folder, stat.S_IMODE(mode) | stat.S_IRWXU)
                depth -= 1
                if depth:
                    target.leave()
                continue
            if depth:
                os.mkdir(place.names[-1], dir_fd=target.folder)
                target.enter(place.names[-1])
            depth += 1
            look(entries, depth - 1)
            for entry in entries:
                if entry.is_symlink():
                    copy_link(entry.name, place.folder, tuple(place.names), target.folder)
                elif entry.is_file(follow_symlinks=False):
                    _copy_file(entry.name, place.folder, target.folder, refuse_foreign)


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it, as far as that is allowed."""
    with suppress(OSError):
        handle = os.open(path, FOLDER)
        try:
            clear_folder(handle)
        finally:
            os.close(handle)
        path.rmdir()


def clear_folder(top: int) -> None:
    """Remove all that is in a folder, as far as that is allowed.

    Args:
        top: The folder, open.
    """
    folders: list[list[str]] = []
    for place, entries in walk(top):
        if entries is None:
            for name in folders.pop():
                with suppress(OSError):
                    os.rmdir(name, dir_fd=place.folder)
            continue
        with suppress(OSError):
            os.fchmod(place.folder, stat.S_IRWXU)
        folders.append([])
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders[-1].append(entry.name)
                continue
            with suppress(OSError):
                os.unlink(entry.name, dir_fd=place.folder)


def walk_paths(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk as `os.walk` does, from the top down, to any depth; too long paths are passed over."""
    waiting = [str(top)]
    while waiting:
        folder = waiting.pop()
        names: list[str] = []
        files: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                (names if entry.is_dir() else files).append(entry.name)
        yield folder, names, files
        below = (os.path.join(folder, name) for name in names)
        waiting += [path for path in below if not os.path.islink(path)]


def _copy_file(name: str, folder: int, to: int, refuse_foreign: bool) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=folder)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return
        if refuse_foreign and is_foreign(found):
            raise PermissionError(f"{name!r} is a hard link to a file of another user")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(name, flags, 0o600, dir_fd=to)
        try:
            if found.st_blocks * _BLOCK_BYTES >= found.st_size:
                _copy_data(handle, made, 0, found.st_size)
            else:
                _copy_sparse(handle, made, found.st_size)
            _copy_facts(handle, made)
        finally:
            os.close(made)
    finally:
        os.close(handle)


def _copy_data(source: int, to: int, begin: int, end: int) -> None:
    # Not what is added meanwhile: that may have no end.
    while begin < end and (sent := os.sendfile(to, source, begin, min(end - begin, SENT_BYTES))):
        begin += sent


def _copy_sparse(source: int, to: int, size: int) -> None:
    """Copy a file with holes, which stay holes: one of terabytes may take no room."""
    place = 0
    while place < size:
        try:
            begin = os.lseek(source, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno != ENXIO:
                raise
            break  # there is nothing but a hole
        place = os.lseek(source, begin, os.SEEK_HOLE)
        os.lseek(to, begin, os.SEEK_SET)
        _copy_data(source, to, begin, min(place, size))
    os.ftruncate(to, size)


def _copy_facts(source: int, to: int) -> None:
    shutil.copystat(f"/proc/self/fd/{source}", f"/proc/self/fd/{to}")


def _raise(error: OSError) -> None:
    raise error
