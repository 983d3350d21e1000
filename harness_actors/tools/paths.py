"""Paths inside a workspace: what a model names can never be outside of it.

A path is resolved with all its symlinks and must then lie inside. Between that and
the opening, a command of the same run could put a symlink in its place: so what was
opened is asked where it is, and files are replaced by name in a folder so checked.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext


def workspace_of(context: ToolContext) -> Path:
    """The folder of the run, its own symlinks resolved.

    Raises:
        ToolError: The run has none, or it is gone.
    """
    if context.workspace is None:
        raise ToolError("this run has no workspace, so there are no files to work on")
    root = Path(os.path.realpath(context.workspace))
    if not root.is_dir():
        raise ToolError("the workspace of this run is gone")
    return root


def resolve_inside(root: Path, path: str) -> Path:
    """The real place of a path that a model named.

    Args:
        root: The workspace, as `workspace_of` gives it.
        path: Relative to it, or absolute.

    Returns:
        An absolute path without symlinks; nothing need be there.

    Raises:
        ToolError: It is outside of the workspace, or no path at all.
    """
    if "\0" in path:
        raise ToolError(f"{_shown(path)} is no path: it holds a NUL character")
    try:
        real = Path(os.path.realpath(root / path))
    except (OSError, ValueError) as error:
        raise ToolError(f"{_shown(path)} is no path: {error}") from None
    if not real.is_relative_to(root):
        raise ToolError(
            f"{_shown(path)} is outside of the workspace; use a path relative to its top folder"
        )
    return real


@contextmanager
def open_to_read(root: Path, path: str) -> Iterator[BinaryIO]:
    """A regular file of the workspace, opened to read.

    Raises:
        ToolError: It is outside, missing, or no regular file.
    """
    real = resolve_inside(root, path)
    with errors_of(path):
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_place(root, path, handle)
        _check_regular(path, os.fstat(handle))
        with errors_of(path), open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def replace_file(root: Path, path: str, data: bytes) -> bool:
    """Write a file of the workspace at once: whoever reads it sees the old or the new.

    Folders that are missing are made; the mode of a file that is there stays.

    Returns:
        Whether there was a file before.

    Raises:
        ToolError: It is outside, no regular file, or cannot be written.
    """
    real = resolve_inside(root, path)
    if real == root:
        raise ToolError(f"{_shown(path)} is a folder")
    with errors_of(path):
        real.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _check_place(root, path, folder)
            old = _existing(path, real.name, folder)
            _swap_in(real.name, folder, data, old)
        finally:
            os.close(folder)
    return old is not None


@contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Say what the system refused in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"there is no {_shown(path)} in the workspace") from None
    except IsADirectoryError:
        raise ToolError(f"{_shown(path)} is a folder") from None
    except NotADirectoryError:
        raise ToolError(f"{_shown(path)} is no folder, or leads through a file") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.errno == errno.ELOOP:
            reason = "its symlinks lead in a circle"
        raise ToolError(f"{_shown(path)}: {reason}") from None
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(path)} is no valid Unicode") from None


def _existing(path: str, name: str, folder: int) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(path, found)
    return found


def _swap_in(name: str, folder: int, data: bytes, old: os.stat_result | None) -> None:
    fresh = f".{name[:100]}.{token_hex(6)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(fresh, flags, 0o666, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            if old is not None:
                os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
            file.write(data)
            file.flush()
            # Else a power failure could leave an empty file under the name.
            os.fsync(handle)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        raise


def _check_place(root: Path, path: str, handle: int) -> None:
    if not Path(os.readlink(f"/proc/self/fd/{handle}")).is_relative_to(root):
        raise ToolError(f"{_shown(path)} is outside of the workspace")


def _check_regular(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{_shown(path)} is a folder; use list_directory to see into it")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{_shown(path)} is a device, pipe or socket; only files can be used")


def _shown(path: str) -> str:
    shown = repr(path)
    return shown if len(shown) <= 200 else f"{shown[:197]}..."
