"""What differs between two trees, and how that is shown: as a patch."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.tree_files import Found, Tree, is_same

MOST_TEXT_BYTES = 1_000_000
MOST_LINES = 20_000
"""Of a file whose lines are shown."""
MOST_SHOWN_CHARS = 10_000_000
"""Of all files together."""
_LOOKED_AT = 8_192
"""Bytes at the beginning of a file that show whether it is text."""
_NO_END = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class Change:
    """A file or link that is not the same in two trees.

    Attributes:
        path: Where.
        before: What was there; None for nothing.
        after: What is there; None for nothing.
    """

    path: str
    before: Found | None
    after: Found | None


def changes_between(before: Tree, after: Tree) -> list[Change]:
    """What differs between two trees, in the order of paths.

    Raises:
        OSError: One of them cannot be read.
    """
    old, new = before.files(), after.files()
    return [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if not is_same(path, (before, old.get(path)), (after, new.get(path)))
        # What cannot be brought anywhere was not changed where it stays what it is.
        and not _is_other(old.get(path), new.get(path))
    ]


def _is_other(before: Found | None, after: Found | None) -> bool:
    return {one.kind for one in (before, after) if one is not None} <= {"other"}


def patch_of(changes: Sequence[Change], before: Tree, after: Tree) -> Iterator[str]:
    """Changes as a unified diff, a text for each; what is no text is named with its size.

    Raises:
        OSError: A file cannot be read.
    """
    left = MOST_SHOWN_CHARS
    for place, change in enumerate(changes):
        check_stopped()
        shown = _shown(change, before, after)
        left -= len(shown)
        if left < 0:
            more = len(changes) - place
            yield f"[{more:,} more files are not shown; name one as path]\n"
            return
        yield shown


def is_text(data: bytes) -> bool:
    """Whether lines of it can be shown and merged."""
    if b"\0" in data[:_LOOKED_AT]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(change: Change, before: Tree, after: Tree) -> str:
    path, old, new = change.path, change.before, change.after
    head = f"diff {_quoted(path)}\n{_kinds(old, new)}"
    one, other = _text_of(path, old, before), _text_of(path, new, after)
    if one is None or other is None:
        sizes = [f"{found.size:,} bytes" for found in (old, new) if found and found.kind == "file"]
        return f"{head}not shown, for it is no text or too long: {' -> '.join(sizes)}\n"
    return head + "".join(_lines(path, (one, old), (other, new)))


def _kinds(old: Found | None, new: Found | None) -> str:
    """A line about what it was and is, where the other lines do not tell that."""
    if old is None and new is not None:
        return f"new {_named(new)}\n"
    if new is None and old is not None:
        return f"deleted {_named(old)}\n"
    assert old is not None, "it is no change of nothing"
    assert new is not None, "as above"
    if _is_file(old) and _is_file(new) and old.runs == new.runs:
        return ""
    return f"was {_named(old)}, is {_named(new)}\n"


def _lines(
    path: str, before: tuple[str, Found | None], after: tuple[str, Found | None]
) -> Iterator[str]:
    (one, old), (other, new) = before, after
    left = f"a/{_quoted(path)}" if _is_file(old) else "/dev/null"
    right = f"b/{_quoted(path)}" if _is_file(new) else "/dev/null"
    for line in difflib.unified_diff(_split(one), _split(other), left, right):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _split(text: str) -> list[str]:
    # Not `splitlines`, for which a form feed ends a line, too.
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _text_of(path: str, found: Found | None, tree: Tree) -> str | None:
    """What lines are shown of; None of what is no text, or too long for that."""
    if found is None or found.kind != "file":
        return ""
    if found.size > MOST_TEXT_BYTES:
        return None
    data = tree.read(path)
    if not is_text(data) or data.count(b"\n") > MOST_LINES:
        return None
    return data.decode()


def _is_file(found: Found | None) -> bool:
    return found is not None and found.kind == "file"


def _named(found: Found) -> str:
    match found.kind:
        case "link":
            return f"link to {_quoted(found.text)}"
        case "file" if found.runs:
            return "file that may be executed"
        case "file":
            return "file"
        case kind:
            return "socket or the like" if kind == "other" else kind


def _quoted(text: str) -> str:
    return text if text.isprintable() else repr(text)
