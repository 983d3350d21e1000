"""The folder that a run works in: a copy of another one, or empty."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.errors import BadInputError
from harness_actors.records import WorkspaceSpec


def prepare_workspace(spec: WorkspaceSpec) -> Path:
    """Make the folder of a run, whole or not at all.

    One that is there is left as it is: the run may have worked in it before.

    Args:
        spec: Where it is, and what it begins as. Symlinks of the source are copied as
            links; sockets, pipes and devices are left out.

    Returns:
        Its path.

    Raises:
        BadInputError: The source is missing, has a symlink that leads out of it, holds
            the workspace itself, or cannot be copied; or the path is taken by a file.
    """
    path = Path(spec.path)
    if path.is_dir():
        return path
    # Looked at again: another run may have made it just now.
    if os.path.lexists(path) and not path.is_dir():
        raise BadInputError(spec.path, ("is to be a workspace, but there is a file of this name",))
    if spec.source is not None:
        _check_source(Path(spec.source), path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if spec.source is None:
            # An empty one is whole as soon as it is there.
            path.mkdir(exist_ok=True)
            return path
        with _half_made(path) as partial:
            if partial is not None:
                _copy_whole(Path(spec.source), partial, keep_outside=False)
                partial.rename(path)
    except OSError as error:
        raise BadInputError(spec.path, (f"cannot be made: {error}",)) from error
    return path


def copy_workspace(path: Path, to: Path) -> None:
    """Copy a workspace to a folder that is not there yet, as a check needs it.

    Symlinks that lead out of it stay as they are: a run may have made a virtual
    environment. Sockets, pipes and devices are left out.

    Raises:
        BadInputError: `path` is no folder, or it cannot be copied.
    """
    if not path.is_dir():
        raise BadInputError(str(path), ("is no folder that could be copied",))
    try:
        to.mkdir(parents=True)
        _copy_whole(path, to, keep_outside=True)
    except OSError as error:
        raise BadInputError(str(path), (f"cannot be copied: {error}",)) from error


def _check_source(source: Path, path: Path) -> None:
    if not source.is_dir():
        found = "is a file" if source.exists() else "does not exist"
        raise BadInputError(str(source), (f"the folder of the workspace {found}",))
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source)):
        problem = f"the workspace {str(path)!r} would lie inside the folder that it is a copy of"
        raise BadInputError(str(source), (problem,))


@contextmanager
def _half_made(path: Path) -> Iterator[Path | None]:
    """An empty folder beside `path`, locked; None if somebody else made `path` meanwhile.

    Its name is fixed, so that what a killed process left is found and cleared away.
    """
    partial = path.with_name(f".{path.name}.partial")
    while True:
        try:
            partial.mkdir(exist_ok=True)
            handle = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except (FileExistsError, FileNotFoundError):
            # It was there for the one of the two, and is the workspace for the other.
            if path.is_dir():
                yield None
                return
            raise
        try:
            # Held until closed; the kernel opens it when this process dies.
            fcntl.flock(handle, fcntl.LOCK_EX)
            ours = _is_still(partial, handle)
            if path.is_dir():
                # Whoever was before us finished; a folder that we made is one too many, and
                # must not take the place of one in which a run may work.
                if ours:
                    shutil.rmtree(partial)
                yield None
                return
            if ours:
                _clear(partial)
                yield partial
                return
        finally:
            os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _clear(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _copy_whole(source: Path, to: Path, *, keep_outside: bool) -> None:
    copying = _Copying(Path(os.path.realpath(source)), keep_outside)
    copying.copy_folder(copying.top, to)
    if copying.faults:
        raise BadInputError(str(source), tuple(copying.faults))


@dataclass(slots=True)
class _Copying:
    """One copy of a tree; faults are gathered, so that the caller learns of all at once."""

    top: Path
    keep_outside: bool
    faults: list[str] = field(default_factory=list)

    def copy_folder(self, folder: Path, to: Path) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            target = to / entry.name
            if entry.is_symlink():
                self._copy_link(Path(entry.path), target)
            elif entry.is_dir(follow_symlinks=False):
                target.mkdir()
                self.copy_folder(Path(entry.path), target)
            elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                shutil.copy2(entry.path, target, follow_symlinks=False)
        shutil.copystat(folder, to)
        # The run must be able to work in it, even if the source is read-only.
        to.chmod(stat.S_IMODE(to.stat().st_mode) | stat.S_IRWXU)

    def _copy_link(self, link: Path, target: Path) -> None:
        text = os.readlink(link)
        real = Path(os.path.realpath(link))
        inside = real.is_relative_to(self.top)
        if not inside and not self.keep_outside:
            name = link.relative_to(self.top)
            self.faults.append(f"the symlink {str(name)!r} leads out of the folder, to {text!r}")
            return
        if inside and not self._stays(link, text):
            # As it stands, the link of the copy would lead back into the source.
            text = os.path.relpath(real, link.parent)
        target.symlink_to(text)

    def _stays(self, link: Path, text: str) -> bool:
        """Whether a link can be kept as it stands: it is relative and goes nowhere outside."""
        depth = len(link.parent.relative_to(self.top).parts)
        for part in text.split("/"):
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            if depth < 0:
                return False
        return not os.path.isabs(text)
