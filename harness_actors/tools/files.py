"""Tools that read and change files: read_file, write_file, edit_file, create_directory."""

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool
from harness_actors.tools.paths import make_folder, open_root, replace_file
from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.texts import (
    MAX_CHARS,
    PIECE_BYTES,
    check_text,
    count_line_ends,
    count_lines,
    find,
    read_bytes,
    show_lines,
    show_whole,
    split_lines,
)

MAX_PLACES = 10
"""Places that are told of a text that is there more than once."""


# Others than the run may change files, so none of these calls is answered by an earlier one. Yet
# who reads the same again and again goes in circles.
@tool(
    effect="read_only",
    resource_keys=["file:{path}"],
    volatile=True,
    polled=False,
    needs=["filesystem"],
)
def read_file(
    path: str,
    context: ToolContext,
    start_line: int | None = None,
    end_line: int | None = None,
) -> str:
    """Read a text file of the workspace: the whole of it, or a range of numbered lines.

    Args:
        path: The file, relative to the top folder of the workspace.
        start_line: First line to show, from 1. Left out with end_line: the whole file.
        end_line: Last line to show; -1 means the last line of the file.
    """
    with open_root(context) as root:
        data = read_bytes(root, path)
    if start_line is None and end_line is None:
        return show_whole(path, data)
    if end_line is not None and end_line < -1:
        raise ToolError(f"end_line is {end_line}; use a line number, or -1 for the last line")
    return show_lines(path, data, start_line or 1, -1 if end_line is None else end_line)


@tool(
    effect="local_write",
    idempotent=True,
    resource_keys=["file:{path}"],
    volatile=True,
    polled=False,
    needs=["filesystem"],
)
def write_file(path: str, content: str, context: ToolContext) -> str:
    """Write a text file of the workspace, new or in place of the old one.

    Folders that are missing are made. To change a part of a file, use edit_file.

    Args:
        path: The file, relative to the top folder of the workspace.
        content: The whole new text of the file.
    """
    data = _encoded(content)
    with open_root(context) as root:
        existed = replace_file(root, path, data)
    verb = "Replaced" if existed else "Created"
    return f"{verb} {path} ({count_lines(data)} lines, {len(data):,} bytes)."


@tool(effect="local_write", resource_keys=["file:{path}"], needs=["filesystem"])
def edit_file(path: str, old_text: str, new_text: str, context: ToolContext) -> str:
    """Replace a piece of a text file, which must stand in the file exactly once.

    Args:
        path: The file, relative to the top folder of the workspace.
        old_text: The text to replace, with its indentation and without line numbers.
        new_text: What to put in its place; empty to delete it.
    """
    if not old_text:
        raise ToolError("old_text is empty; name the text to replace, or use write_file")
    if len(old_text) > MAX_CHARS:
        raise ToolError(
            f"old_text has {len(old_text):,} characters, and may have {MAX_CHARS:,}; "
            "replace a shorter piece, or use write_file"
        )
    old, new = _encoded(old_text), _encoded(new_text)
    with open_root(context) as root:
        data = read_bytes(root, path)
        check_text(path, data)
        if find(data, b"\r\n") >= 0 and find(data, old) < 0:
            # Models write plain line ends, whatever the file has.
            old, new = _with_crlf(old), _with_crlf(new)
        if old == new:
            raise ToolError("old_text and new_text are the same; nothing would change")
        place = _only_place(path, data, old)
        check_stopped()
        replace_file(root, path, b"".join((data[:place], new, data[place + len(old) :])))
    return f"Edited {path} at line {_line_of(data, place)}."


@tool(
    effect="local_write",
    idempotent=True,
    resource_keys=["file:{path}"],
    volatile=True,
    polled=False,
    needs=["filesystem"],
)
def create_directory(path: str, context: ToolContext) -> str:
    """Make a folder in the workspace, with the folders above it; one that is there stays.

    Args:
        path: The folder, relative to the top folder of the workspace.
    """
    with open_root(context) as root:
        made = make_folder(root, path)
    return f"Created folder {path}." if made else f"{path} is there already."


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the text is no valid Unicode at character {error.start}") from None


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _only_place(path: str, data: bytes, wanted: bytes) -> int:
    places: list[int] = []
    place = find(data, wanted)
    while place >= 0 and len(places) <= MAX_PLACES:
        places.append(place)
        # Places may overlap; then, too, it is not clear which one is meant.
        place = find(data, wanted, place + 1)
    if not places:
        raise ToolError(f"old_text occurs 0 times in {path!r}{_hint(data, wanted)}")
    if len(places) > 1:
        lines = ", ".join(str(_line_of(data, place)) for place in places[:MAX_PLACES])
        many = len(places) > MAX_PLACES
        times, more = (f"more than {MAX_PLACES}", ", ...") if many else (len(places), "")
        raise ToolError(
            f"old_text occurs {times} times in {path!r} (at lines {lines}{more}), "
            "and must occur once; add lines around it"
        )
    return places[0]


def _hint(data: bytes, wanted: bytes) -> str:
    """Where the text stands with other white space; models lose indentation."""
    if len(data) <= PIECE_BYTES and (bare := _bare(wanted).strip("\n")):
        lines = f"\n{_bare(data)}\n"
        place = lines.find(f"\n{bare}\n")
        if place >= 0:
            line = lines.count("\n", 0, place) + 1
            return f"; at line {line} it stands with other white space: copy it exactly"
    return "; read the file again and copy the text exactly"


def _bare(data: bytes) -> str:
    """The lines of a text without any white space."""
    return "\n".join("".join(line.split()) for line in split_lines(data.decode()))


def _line_of(data: bytes, place: int) -> int:
    return count_line_ends(data, place) + 1
