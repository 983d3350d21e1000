"""Changes of a tree as people and models read them: a unified diff."""

import difflib
import re
from collections.abc import Iterator, Sequence

from harness_actors.tools.changes import Change
from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.tree_files import Found, Tree

MOST_TEXT_BYTES = 1_000_000
"""Of a file whose lines are shown."""
MOST_LINES = 5_000
"""From the first line of a file that was changed to the last: finding what is the same between
takes long."""
MOST_SHOWN_CHARS = 10_000_000
"""Of all files together."""
CONTEXT = 3
"""Lines that are shown around others."""
_LOOKED_AT = 8_192
"""Bytes at the beginning of a file that show whether it is text."""
_NO_END = "\\ No newline at end of file\n"
_RANGE = re.compile(r"([-+])(\d+)((?:,\d+)?)(?= )")


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
    return head + "".join(_lines(path, change, _split(one), _split(other)))


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


def _lines(path: str, change: Change, one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """The lines of a unified diff; nothing of lines that are the same."""
    begin, end = _same_around(one, other)
    # With what is shown around a change, so that its hunks are as they would be of all.
    at = max(0, begin - CONTEXT)
    left, right = (lines[at : len(lines) - max(0, end - CONTEXT)] for lines in (one, other))
    names = f"a/{_quoted(path)}", f"b/{_quoted(path)}"
    old, new = (
        name if _is_file(found) else "/dev/null"
        for name, found in zip(names, (change.before, change.after), strict=True)
    )
    if max(len(left), len(right)) > MOST_LINES:
        yield f"[{len(one):,} -> {len(other):,} lines: too many changes to be shown]\n"
        return
    for line in difflib.unified_diff(left, right, old, new, n=CONTEXT):
        if line.startswith("@@"):
            yield _moved(line, at)
        else:
            yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _same_around(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are the same."""
    most = min(len(one), len(other))
    begin = next((at for at in range(most) if one[at] != other[at]), most)
    rest = most - begin
    end = next((at for at in range(rest) if one[-1 - at] != other[-1 - at]), rest)
    return begin, end


def _moved(heading: str, by: int) -> str:
    """The heading of a hunk, so many lines further down."""

    def moved(found: re.Match[str]) -> str:
        sign, line, count = found.groups()
        return f"{sign}{int(line) + by}{count}"

    return _RANGE.sub(moved, heading)


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
    return data.decode() if is_text(data) else None


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
