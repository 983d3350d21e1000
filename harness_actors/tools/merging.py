"""Brings what was changed in a copy of a tree into the tree, file by file, and loses nothing there.

The rule, of what a file was (*base*), is in the copy (*theirs*) and is in the tree (*ours*):

- Ours is theirs: nothing is done.
- Ours is the base: theirs is taken, be it a file, a link, or nothing.
- Both are other files: whether it may be executed and what is in it are merged apart from one
  another, lines by git where there is one, and what comes of it is taken if no lines clash.
- All else is a conflict, and ours stays as it is.

What comes of a merge is on record before it is written, by its hash: merged once more, it could
take lines twice. So the same again changes nothing, also after a process died in the middle.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from harness_actors.tools.changes import Change
from harness_actors.tools.line_merging import ClashError, merge_lines
from harness_actors.tools.patches import is_text
from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.tree_files import (
    BlockedError,
    Found,
    Tree,
    digest_of,
    is_same,
    pieces_at,
)
from harness_actors.tools.workspace import stays

MOST_MERGED_BYTES = 4_000_000
"""Of a file whose lines are merged."""
How = Literal["applied", "merged", "same", "conflict"]
_READ_WRITE = 0o666


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change.

    Attributes:
        path: The file.
        how: Taken as it is, merged with what the tree has, there already, or left as it is.
        why: Of a conflict, what is in the way.
    """

    path: str
    how: How
    why: str = ""


class Record:
    """What was brought in from one copy before: of each file what theirs was, and what came of it.

    Args:
        path: The file that keeps it; made with the first.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = set(self._lines())

    def has(self, path: str, theirs: str, ours: str) -> bool:
        """Whether ours came of bringing theirs in; both by their digests."""
        return (path, theirs, ours) in self._known

    def add(self, path: str, theirs: str, ours: str) -> None:
        """Write down what is about to be done.

        Raises:
            OSError: It cannot be written.
        """
        if self.has(path, theirs, ours):
            return
        line = orjson.dumps([os.fsencode(path).hex(), theirs, ours]) + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self._path, flags, 0o600)
        try:
            # A line of its own also behind one that a death has cut off.
            os.write(handle, b"\n" + line)
            os.fsync(handle)
        finally:
            os.close(handle)

    def _lines(self) -> Iterator[tuple[str, str, str]]:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return
        for line in text.split(b"\n"):
            with suppress(ValueError, TypeError):
                path, theirs, ours = orjson.loads(line)
                yield os.fsdecode(bytes.fromhex(path)), theirs, ours


@dataclass(eq=False)
class Merging:
    """Brings changes of a copy into a tree.

    Args:
        base: What the copy began as.
        theirs: The copy.
        ours: The tree.
        record: What was brought in before.
    """

    _base: Tree
    _theirs: Tree
    _ours: Tree
    _record: Record

    def bring_in(self, changes: Sequence[Change]) -> list[Outcome]:
        """Bring in changes of the copy, and say what became of each, in their order.

        Raises:
            OSError: What the copy or the record has cannot be read or written.
        """
        found: dict[str, Outcome] = {}
        # What is removed first: a file may come in the place of a folder.
        for change in sorted(changes, key=lambda one: one.after is not None):
            check_stopped()
            found[change.path] = self._one(change)
        return [found[change.path] for change in changes]

    def _one(self, change: Change) -> Outcome:
        path = change.path
        try:
            ours = self._ours.look(path)
        except BlockedError:
            if change.after is None:
                return Outcome(path, "same")
            return Outcome(path, "conflict", "a file or link is where a folder of it should be")
        except OSError as error:
            return Outcome(path, "conflict", f"it cannot be seen: {error.strerror or error}")
        if ours is not None and ours.kind == "folder":
            if change.after is None:
                return Outcome(path, "same")
            return Outcome(path, "conflict", "your workspace has a folder of this name")
        try:
            return self._brought(change, ours)
        except _ConflictError as conflict:
            return Outcome(path, "conflict", str(conflict))
        except OSError as error:
            return Outcome(path, "conflict", f"it cannot be written: {error.strerror or error}")

    def _brought(self, change: Change, ours: Found | None) -> Outcome:
        path, before, after = change.path, change.before, change.after
        mine = (self._ours, ours)
        if is_same(path, mine, (self._theirs, after)):
            return Outcome(path, "same")
        theirs = self._theirs.digest(path, after)
        if self._record.has(path, theirs, self._ours.digest(path, ours)):
            return Outcome(path, "same")
        _check_movable(path, after)
        if is_same(path, mine, (self._base, before)):
            self._take(path, after, ours)
            return Outcome(path, "applied")
        if before is None:
            raise _ConflictError("both have made it, and it is not the same")
        if after is None:
            raise _ConflictError("it is deleted there, and was changed in your workspace")
        if ours is None:
            raise _ConflictError("it is changed there, and was deleted in your workspace")
        if not before.kind == after.kind == ours.kind == "file":
            raise _ConflictError("a file became something else, or a link leads elsewhere")
        return self._merge(path, theirs, (before, after, ours))

    def _take(self, path: str, after: Found | None, ours: Found | None) -> None:
        if after is None:
            self._ours.remove(path, keeps=self._theirs)
        elif after.kind == "link":
            self._ours.put_link(path, after.text)
        else:
            mode = after.mode
            if ours is not None and ours.kind == "file":
                mode = _with_runs(ours.mode, runs=after.runs)
            self._ours.put(path, pieces_at(self._theirs, path), mode)

    def _merge(self, path: str, theirs: str, found: tuple[Found, Found, Found]) -> Outcome:
        before, after, ours = found
        # Of two values, the one that is not that of the base; if both are not, they are the same.
        runs = after.runs if ours.runs == before.runs else ours.runs
        mode = _with_runs(ours.mode, runs=runs)
        mine, base, copy = (self._ours, ours), (self._base, before), (self._theirs, after)
        if _is_same_inside(path, copy, base) or _is_same_inside(path, mine, copy):
            digest = digest_of(pieces_at(self._ours, path), runs=runs)
            self._record.add(path, theirs, digest)
            self._ours.change_mode(path, mode)
            return Outcome(path, "merged")
        if _is_same_inside(path, mine, base):
            data = self._theirs.read(path) if after.size <= MOST_MERGED_BYTES else None
            if data is None:
                raise _ConflictError("its mode was changed in your workspace, and it is too long")
        else:
            data = self._lines_of(path, found)
        digest = digest_of([data], runs=runs)
        self._record.add(path, theirs, digest)
        self._ours.put(path, [data], mode)
        return Outcome(path, "merged")

    def _lines_of(self, path: str, found: tuple[Found, Found, Found]) -> bytes:
        if max(one.size for one in found) > MOST_MERGED_BYTES:
            raise _ConflictError("both have changed it, and it is too long to be merged")
        texts = [tree.read(path) for tree in (self._ours, self._base, self._theirs)]
        if not all(map(is_text, texts)):
            raise _ConflictError("both have changed it, and it is no text")
        try:
            return merge_lines(*texts)
        except ClashError as clash:
            raise _ConflictError(str(clash)) from None


class _ConflictError(Exception):
    """A change cannot be brought in."""


def _check_movable(path: str, after: Found | None) -> None:
    if after is None or after.kind == "file":
        return
    if after.kind != "link":
        raise _ConflictError("it is neither file nor link, or a file of another user")
    if not stays(path.count("/"), after.text):
        raise _ConflictError("it is a link that leads out of the workspace")


def _with_runs(mode: int, *, runs: bool) -> int:
    """Permissions with those to execute it, for whoever may read it, or without."""
    bare = mode & _READ_WRITE
    return bare | (bare & 0o444) >> 2 if runs else bare


def _is_same_inside(path: str, one: tuple[Tree, Found], other: tuple[Tree, Found]) -> bool:
    """Whether two files hold the same, whoever may execute them."""
    (tree, found), (other_tree, other_found) = one, other
    bare = Found("file", found.size), Found("file", other_found.size)
    return is_same(path, (tree, bare[0]), (other_tree, bare[1]))
