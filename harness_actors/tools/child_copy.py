"""The copy of a workspace in which a run works for another one, and what it has changed there."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness_actors.errors import BadInputError, HarnessError, ToolError
from harness_actors.ports import ChildCopy
from harness_actors.records import FolderId, WorkspaceSpec
from harness_actors.tools.changes import Change, changes_between
from harness_actors.tools.standing import open_straight
from harness_actors.tools.tree_files import MOST_LEVELS, Tree
from harness_actors.tools.trees import Entry, Look, look_at_nothing, remove_tree
from harness_actors.tools.workspace import copy_whole, half_made

MOST_BYTES = 2 << 30
MOST_ENTRIES = 250_000
OWN_FOLDER = 0o700


def make_copy(spec: WorkspaceSpec) -> Path:
    """Make the folder of a run that works in a copy, with what it began as, whole or not at all.

    Symlinks stay as they are; sockets, pipes and devices are left out, and so is the folder in
    which all such copies are. One that is there is left as it is: the run may have worked in it.

    Args:
        spec: Where it is, and what it begins as.

    Returns:
        Its path.

    Raises:
        BadInputError: What it is to be a copy of is gone, too large, holds a hard link to a file of
            another user, or cannot be copied.
    """
    assert spec.source is not None, "it is a copy"
    assert spec.base is not None, "so is what it began as"
    work, base = Path(spec.path), Path(spec.base)
    place = work.parent
    if _is_own(place):
        return work
    copies = place.parent.parent
    try:
        for folder in (copies, place.parent):
            _make_own(folder)
        with half_made(place) as partial:
            if partial is None:
                _check_own(place)
                return work
            partial.chmod(OWN_FOLDER)
            made = partial / base.name, partial / work.name
            for folder in made:
                folder.mkdir()
            bounds = _Bounds(spec.source, FolderId.of(copies.stat()))
            try:
                _copy(Path(spec.source), made[0], bounds.look)
                # Not of the source, which may change meanwhile: the two must be the same.
                _copy(made[0], made[1])
            except BaseException:
                # It may be large, and perhaps nobody comes again.
                remove_tree(partial)
                raise
            partial.rename(place)
    except OSError as error:
        raise BadInputError(spec.path, (f"the copy cannot be made: {error}",)) from error
    return work


def _copy(source: Path, to: Path, look: Look = look_at_nothing) -> None:
    handle = open_straight(source)
    try:
        copy_whole(handle, source, to, keep_outside=True, look=look)
    finally:
        os.close(handle)


class _Bounds:
    """How large what is copied may be.

    Args:
        name: What it is, for errors.
        left_out: The folder that is left out, should it be in it.
    """

    def __init__(self, name: str, left_out: FolderId) -> None:
        self._name, self._left_out = name, left_out
        self._entries = self._bytes = 0

    def look(self, entries: list[Entry], depth: int) -> None:
        if depth > MOST_LEVELS:
            problem = f"has folders in folders more than {MOST_LEVELS:,} times, too deep for a copy"
            raise BadInputError(self._name, (problem,))
        kept = list[Entry]()
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            if FolderId.of(found) == self._left_out:
                continue
            kept.append(entry)
            self._entries += 1
            if entry.is_file(follow_symlinks=False):
                # What a file with holes takes is less than its size.
                self._bytes += min(found.st_size, found.st_blocks * 512)
            if self._entries > MOST_ENTRIES or self._bytes > MOST_BYTES:
                problem = (
                    f"has more than {MOST_ENTRIES:,} entries or {MOST_BYTES >> 30} GiB, which is "
                    "too large for a copy; let the agent share it (workspace: shared)"
                )
                raise BadInputError(self._name, (problem,))
        entries[:] = kept


def _make_own(folder: Path) -> None:
    # Not their parents: a run directory that was removed must not come back.
    try:
        folder.mkdir(OWN_FOLDER)
    except FileExistsError:
        _check_own(folder)


def _check_own(folder: Path) -> None:
    if not _is_own(folder):
        raise NotADirectoryError(f"{str(folder)!r} is no folder of ours")


def _is_own(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def changed_files(spec: WorkspaceSpec) -> Sequence[str] | None:
    """The files that a run has changed in its copy, in order; None where that cannot be seen."""
    assert spec.base is not None, "it works in a copy"
    try:
        with _open_both(Path(spec.base), Path(spec.path)) as (base, work):
            return [change.path for change in changes_between(base, work)]
    except (OSError, HarnessError):
        return None


@contextmanager
def open_copy(copy: ChildCopy) -> Iterator[tuple[Tree, Tree, Sequence[Change]]]:
    """What a copy began as, the copy, and what was changed there, in order.

    Raises:
        ToolError: It is gone, or cannot be read.
    """
    try:
        with _open_both(copy.base, copy.work) as (base, work):
            yield base, work, changes_between(base, work)
    except BadInputError:
        raise ToolError(f"the copy of {copy.handle} is gone; do the work anew") from None
    except OSError as error:
        what = "" if error.filename is None else f" ({error.filename!r:.200})"
        problem = f"{error.strerror or error}{what}"
        raise ToolError(f"the copy of {copy.handle} cannot be read: {problem}") from None


@contextmanager
def _open_both(base: Path, work: Path) -> Iterator[tuple[Tree, Tree]]:
    handles: list[int] = []
    try:
        for folder in (base, work):
            handles.append(open_straight(folder))
        yield Tree(handles[0]), Tree(handles[1])
    finally:
        for handle in handles:
            os.close(handle)
