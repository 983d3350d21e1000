"""The folder that a run works in: a copy of another one, or empty."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.errors import BadInputError
from harness_actors.records import WorkspaceSpec
from harness_actors.tools.scan import FOLDER
from harness_actors.tools.standing import open_straight
from harness_actors.tools.trees import (
    Look,
    clear_folder,
    copy_tree,
    look_at_nothing,
    remove_tree,
)


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
            the workspace itself, or cannot be copied; or the path is taken by a file. Or as
            `make_copy`.
    """
    if spec.base is not None:
        # Here, for few runs work in one.
        from harness_actors.tools.child_copy import make_copy

        return make_copy(spec)
    path = Path(spec.path)
    if spec.source is None and _is_made(path):
        return path
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
            path.mkdir(exist_ok=True)
            return path
        with half_made(path) as partial:
            if partial is not None:
                source = os.open(spec.source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    copy_whole(source, Path(spec.source), partial, keep_outside=False)
                finally:
                    os.close(source)
                partial.rename(path)
    except OSError as error:
        raise BadInputError(spec.path, (f"cannot be made: {error}",)) from error
    return path


def copy_workspace(path: Path, to: Path) -> None:
    """Copy a workspace to a folder that is not there yet, as a check needs it.

    Symlinks that lead out of it stay as they are: a run may have made a virtual
    environment. Sockets, pipes and devices are left out.

    Raises:
        BadInputError: It is gone, or a symlink was put in its place; it holds a hard link
            to a file of another user; or it cannot be copied.
    """
    source = open_straight(path)
    try:
        to.mkdir(parents=True)
        copy_whole(source, path, to, keep_outside=True)
    except OSError as error:
        raise BadInputError(str(path), (f"cannot be copied: {error}",)) from error
    finally:
        os.close(source)


def _is_made(path: Path) -> bool:
    """Make an empty folder, which is whole as soon as it is there; False where it cannot be
    made without a further look.

    One call of the system: a batch makes thousands at once, and each call of a thread hands the
    lock of the interpreter on.
    """
    try:
        path.mkdir()
    except OSError:
        return False
    return True


def _check_source(source: Path, path: Path) -> None:
    if not source.is_dir():
        found = "is a file" if source.exists() else "does not exist"
        raise BadInputError(str(source), (f"the folder of the workspace {found}",))
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(source)):
        problem = f"the workspace {str(path)!r} would lie inside the folder that it is a copy of"
        raise BadInputError(str(source), (problem,))


@contextmanager
def half_made(path: Path) -> Iterator[Path | None]:
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
                    remove_tree(partial)
                yield None
                return
            if ours:
                clear_folder(handle)
                yield partial
                return
        finally:
            os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def copy_whole(
    source: int,
    name: Path,
    to: Path,
    *,
    keep_outside: bool,
    look: Look = look_at_nothing,
) -> None:
    """Copy what is in a folder into an empty one.

    Args:
        source: The folder, open.
        name: What errors call it.
        to: The empty one.
        keep_outside: Keep symlinks that lead out of it as they are, and refuse hard links to files
            of other users; else those are refused.
        look: See `copy_tree`.

    Raises:
        BadInputError: It has such symlinks.
        OSError: Something cannot be read or written.
    """
    links = _Links(Path(os.readlink(f"/proc/self/fd/{source}")), keep_outside)
    target = os.open(to, FOLDER)
    try:
        copy_tree(source, target, links.copy, refuse_foreign=keep_outside, look=look)
    finally:
        os.close(target)
    if links.faults:
        raise BadInputError(str(name), tuple(links.faults))


@dataclass(slots=True)
class _Links:
    """The symlinks of one copy; faults are gathered, so that the caller learns of all at once."""

    top: Path
    keep_outside: bool
    faults: list[str] = field(default_factory=list)

    def copy(self, name: str, folder: int, above: tuple[str, ...], to: int) -> None:
        text = os.readlink(name, dir_fd=folder)
        parent = self.top.joinpath(*above)
        if self.keep_outside and stays(len(above), text):
            # An agent's thousand links to one another need not be resolved.
            os.symlink(text, name, dir_fd=to)
            return
        real = _resolved(parent / name, text)
        inside = real.is_relative_to(self.top)
        if not inside and not self.keep_outside:
            shown = str(Path(*above, name))
            self.faults.append(f"the symlink {shown!r} leads out of the folder, to {text!r}")
            return
        if inside and not stays(len(above), text):
            # As it stands, the link of the copy would lead back into the source.
            text = os.path.relpath(real, parent)
        os.symlink(text, name, dir_fd=to)


def _resolved(link: Path, text: str) -> Path:
    """Where a symlink leads, as the system sees it; nothing need be there."""
    try:
        handle = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        try:
            return Path(os.path.realpath(link))
        except RecursionError:
            pass
    except OSError:
        # In a circle, through more links than the system follows, or too deep.
        pass
    else:
        try:
            return Path(os.readlink(f"/proc/self/fd/{handle}"))
        finally:
            os.close(handle)
    return Path(os.path.normpath(link.parent / text))


def stays(depth: int, text: str) -> bool:
    """Whether a link so far below can be kept: it is relative and goes nowhere outside."""
    for part in text.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return False
    return not os.path.isabs(text)
