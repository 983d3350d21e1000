"""The way along a path that a model named, which never leaves the workspace.

A path is gone along from the open folder of the run, name by name, each opened in the
one before and never through a symlink. Symlinks are read, and what they say is gone
along in the same way. So a command of the same run that puts a symlink in the place of
a folder, at whatever moment, finds it refused or followed inside.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness_actors.errors import ToolError
from harness_actors.tools.scan import Descent

MAX_PATH_BYTES = 4096
"""Longer paths no system call takes."""
MAX_LINKS = 40
"""Symlinks that one path may lead through, as in the system itself."""


class MissingPathError(ToolError):
    """Nothing is at a path, or a folder on the way to it is missing, or is none."""


@dataclass(frozen=True, slots=True)
class Root:
    """The folder of a run, open: it is the same one whatever is at its path now.

    Attributes:
        path: As the run knows it.
        handle: Its descriptor.
        read_only: Nothing is to be written there.
    """

    path: Path
    handle: int
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads to; nothing need be there.

    Attributes:
        folder: The folder that it is in, open.
        name: Its name there, and no symlink's; empty for the workspace itself.
    """

    folder: int
    name: str

    def stat(self) -> os.stat_result | None:
        """The status of what is there; None for nothing. Follows no symlink."""
        with suppress(FileNotFoundError):
            return os.stat(self.name or ".", dir_fd=self.folder, follow_symlinks=False)
        return None

    @contextmanager
    def enter(self) -> Iterator[int]:
        """The folder that is there, open.

        Raises:
            OSError: There is none, or none that can be opened.
        """
        with closing(Descent(self.folder)) as descent:
            if self.name:
                descent.enter(self.name)
            yield descent.folder


@contextmanager
def find_inside(root: Root, path: str, *, make_folders: bool = False) -> Iterator[Place]:
    """The place of a path that a model named.

    Args:
        root: The workspace.
        path: Relative to it, or absolute.
        make_folders: Make the folders on the way that are missing.

    Raises:
        ToolError: It is outside of the workspace, or no path at all, or a folder on the
            way is missing. What the receiver is refused by the system is one, too.
    """
    if "\0" in path:
        raise ToolError(f"{shown(path)} is no path: it holds a NUL character")
    with closing(Descent(root.handle)) as descent, _errors_of(path):
        name = _Way(root, path, descent, make_folders).go()
        yield Place(descent.folder, name)


class _Way:
    """The way along one path; what is met on it may change at any moment."""

    def __init__(self, root: Root, path: str, descent: Descent, make_folders: bool) -> None:
        self._root = root
        self._path = path
        self._descent = descent
        self._make_folders = make_folders
        self._ahead: list[str] = []
        """The names to come, the next one last."""
        self._turns = 0

    def go(self) -> str:
        """Go down to the last folder; returns the name there, empty for the top itself."""
        if len(os.fsencode(self._path)) > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, "")
        self._turn_to(self._path)
        while self._ahead:
            name = self._ahead.pop()
            if name == "..":
                self._up()
            elif self._ahead:
                self._enter(name)
            elif (text := self._link(name)) is None:
                return name
            else:
                self._turn_to(text)
        # It ended in `..`, or where a link leads to the top.
        if not self._descent.names:
            return ""
        name = self._descent.names[-1]
        self._descent.leave()
        return name

    def _turn_to(self, text: str) -> None:
        self._turns += 1
        if self._turns > MAX_LINKS:
            raise ToolError(f"{shown(self._path)}: its symlinks lead in a circle")
        if text.startswith("/"):
            text = self._inside(text)
            self._descent.restart()
        self._ahead += [name for name in reversed(text.split("/")) if name not in ("", ".")]

    def _inside(self, text: str) -> str:
        """An absolute path, relative to the workspace."""
        tops = str(self._root.path), real_path(self._root)
        for top in tops:
            if (rest := _below(top, text)) is not None:
                return rest
        # It may be a link into it. Where that leads is gone along like any other path.
        rest = _below(tops[1], self._resolved(text))
        if rest is None:
            raise _outside(self._path)
        return rest

    def _up(self) -> None:
        if self._descent.names:
            self._descent.leave()
            return
        # Out of the workspace; the names to come may lead back into it.
        text = "/".join([real_path(self._root), "..", *reversed(self._ahead)])
        self._ahead.clear()
        self._turn_to(self._resolved(text))

    def _resolved(self, text: str) -> str:
        try:
            return os.path.realpath(text)
        except RecursionError:
            raise ToolError(f"{shown(self._path)}: it leads through too many symlinks") from None

    def _enter(self, name: str) -> None:
        try:
            self._descent.enter(name)
        except FileNotFoundError:
            self._enter_missing(name)
        except NotADirectoryError:
            text = self._link(name)
            if text is None:
                raise
            self._turn_to(text)

    def _enter_missing(self, name: str) -> None:
        if ".." in self._ahead:
            # In what is not there, there are no links: its names are only names.
            text = os.path.normpath("/".join([name, *reversed(self._ahead)]))
            self._ahead.clear()
            self._turn_to(text)
            return
        if not self._make_folders:
            raise FileNotFoundError
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._descent.folder)
        self._descent.enter(name)

    def _link(self, name: str) -> str | None:
        """What a symlink says; None of what is none."""
        try:
            return os.readlink(name, dir_fd=self._descent.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Say what the system refused in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise MissingPathError(f"there is no {shown(path)} in the workspace") from None
    except IsADirectoryError:
        raise ToolError(f"{shown(path)} is a folder") from None
    except NotADirectoryError:
        raise MissingPathError(f"{shown(path)} is no folder, or leads through a file") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.errno == errno.ELOOP:
            reason = "a symlink was put in its place while it was opened"
        raise ToolError(f"{shown(path)}: {reason}") from None
    except UnicodeEncodeError:
        raise ToolError(f"{shown(path)} is no valid Unicode") from None


def real_path(root: Root) -> str:
    """Where the folder is now, without symlinks."""
    return os.readlink(f"/proc/self/fd/{root.handle}")


def _below(top: str, path: str) -> str | None:
    """An absolute path relative to a folder; None where it does not begin with that."""
    top = top.rstrip("/")
    if path == top:
        return ""
    return path[len(top) + 1 :] if path.startswith(f"{top}/") else None


def _outside(path: str) -> ToolError:
    return ToolError(
        f"{shown(path)} is outside of the workspace; use a path relative to its top folder"
    )


def shown(path: str) -> str:
    """A path as messages show it, cut where it is long."""
    text = repr(path)
    return text if len(text) <= 200 else f"{text[:197]}..."
