"""The files and folders of a workspace, opened, made and replaced by the paths of a model."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.records import FolderId
from harness_actors.tools.scan import is_foreign
from harness_actors.tools.way import Place, Root, find_inside, real_path, shown

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""O_NONBLOCK: opening a pipe that nobody writes to would wait for ever."""
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def workspace_of(context: ToolContext) -> Path:
    """The folder of the run, its own symlinks resolved.

    Raises:
        ToolError: The run has none, or it is gone or replaced.
    """
    with open_root(context) as root:
        return Path(real_path(root))


@contextmanager
def open_root(context: ToolContext) -> Iterator[Root]:
    """The folder of the run, open.

    Raises:
        ToolError: The run has none, or it is gone or replaced.
    """
    if context.workspace is None:
        raise ToolError("this run has no workspace, so there are no files to work on")
    with open_workspace(context.workspace, context.workspace_id) as root:
        yield replace(root, read_only=context.read_only)


@contextmanager
def open_workspace(path: Path, known: FolderId | None) -> Iterator[Root]:
    """A workspace, open.

    Args:
        path: The folder.
        known: What it is known by; None where nobody knows.

    Raises:
        ToolError: It is gone or replaced.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError("the workspace of this run is gone") from None
    except OSError as error:
        raise ToolError(f"the workspace of this run: {error.strerror}") from None
    try:
        if known is not None and FolderId.of(os.fstat(handle)) != known:
            raise ToolError(
                "the workspace of this run was moved away: another folder or a symlink is in its "
                "place, and nothing is done there"
            )
        yield Root(path, handle)
    finally:
        os.close(handle)


@contextmanager
def open_to_read(root: Root, path: str) -> Iterator[BinaryIO]:
    """A regular file of the workspace, opened to read.

    Raises:
        ToolError: It is outside, missing, no regular file, or another user's with a
            second name.
    """
    with find_inside(root, path) as place:
        handle = os.open(place.name or ".", READ, dir_fd=place.folder)
        with open(handle, "rb") as file:
            check_regular(path, os.fstat(handle))
            yield file


@contextmanager
def open_folder(root: Root, path: str) -> Iterator[int]:
    """A folder of the workspace, opened to look into.

    Raises:
        ToolError: It is outside, missing, or no folder.
    """
    with find_inside(root, path) as place:
        found = place.stat()
        if found is None:
            raise ToolError(f"there is no folder {shown(path)} in the workspace")
        if not stat.S_ISDIR(found.st_mode):
            raise ToolError(f"{shown(path)} is a file, not a folder")
        with place.enter() as folder:
            yield folder


def replace_file(root: Root, path: str, data: bytes) -> bool:
    """Write a file of the workspace at once: whoever reads it sees the old or the new.

    Folders that are missing are made; the mode of a file that is there stays.

    Returns:
        Whether there was a file before.

    Raises:
        ToolError: It is outside, no regular file, another user's with a second name, or
            cannot be written.
    """
    check_writable(root)
    with find_inside(root, path, make_folders=True) as place:
        if not place.name:
            raise ToolError(f"{shown(path)} is a folder")
        old = place.stat()
        if old is not None:
            check_regular(path, old)
        _swap_in(place, data, old)
    return old is not None


def make_folder(root: Root, path: str) -> bool:
    """Make a folder of the workspace, with those above it.

    Returns:
        Whether it is new.

    Raises:
        ToolError: It is outside, there is a file of this name, or it cannot be made.
    """
    check_writable(root)
    with find_inside(root, path, make_folders=True) as place:
        if not place.name:
            return False
        try:
            os.mkdir(place.name, dir_fd=place.folder)
        except FileExistsError:
            found = place.stat()
            if found is not None and not stat.S_ISDIR(found.st_mode):
                raise ToolError(
                    f"{shown(path)} is a file; choose another name for the folder"
                ) from None
            return False
    return True


def check_writable(root: Root) -> None:
    """Refuse to write where the run is only to read.

    Raises:
        ToolError: It is.
    """
    if root.read_only:
        raise ToolError("the workspace of this agent is read-only; say what is to be changed")


def check_regular(path: str, found: os.stat_result) -> None:
    """Refuse what is no file, or not certainly one of this run.

    Raises:
        ToolError: It is a folder, device, pipe or socket, or another user's file that has
            a second name.
    """
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{shown(path)} is a folder; use list_directory to see into it")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{shown(path)} is a device, pipe or socket; only files can be used")
    if is_foreign(found):
        raise ToolError(
            f"{shown(path)} is a hard link to a file of another user, which may be outside of "
            "the workspace; only files of the run's own user can be used"
        )


def _swap_in(place: Place, data: bytes, old: os.stat_result | None) -> None:
    # Not of the file's own name: that may be as long as a name can be.
    fresh = f".harness-{token_hex(8)}.tmp"
    handle = os.open(fresh, CREATE, 0o666, dir_fd=place.folder)
    try:
        with open(handle, "wb") as file:
            if old is not None:
                os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
            file.write(data)
            file.flush()
            # Else a power failure could leave an empty file under the name.
            os.fsync(handle)
        os.rename(fresh, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place.folder)
        raise
