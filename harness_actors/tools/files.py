"""Tools that read and change files: read_file, write_file, edit_file, create_directory."""

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool
from harness_actors.tools.paths import make_folder, open_root, replace_file
from harness_actors.tools.texts import read_text, show_lines, show_whole, split_lines


@tool(effect="read_only", resource_keys=["file:{path}"])
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
        text = read_text(root, path)
    if start_line is None and end_line is None:
        return show_whole(path, text)
    if end_line is not None and end_line < -1:
        raise ToolError(f"end_line is {end_line}; use a line number, or -1 for the last line")
    return show_lines(path, text, start_line or 1, -1 if end_line is None else end_line)


@tool(effect="local_write", idempotent=True, resource_keys=["file:{path}"])
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
    return f"{verb} {path} ({len(split_lines(content))} lines, {len(data):,} bytes)."


@tool(effect="local_write", resource_keys=["file:{path}"])
def edit_file(path: str, old_text: str, new_text: str, context: ToolContext) -> str:
    """Replace a piece of a text file, which must stand in the file exactly once.

    Args:
        path: The file, relative to the top folder of the workspace.
        old_text: The text to replace, with its indentation and without line numbers.
        new_text: What to put in its place; empty to delete it.
    """
    if not old_text:
        raise ToolError("old_text is empty; name the text to replace, or use write_file")
    with open_root(context) as root:
        text = read_text(root, path)
        if "\r\n" in text and old_text not in text:
            # Models write plain line ends, whatever the file has.
            old_text, new_text = _with_crlf(old_text), _with_crlf(new_text)
        if old_text == new_text:
            raise ToolError("old_text and new_text are the same; nothing would change")
        place = _only_place(path, text, old_text)
        edited = text[:place] + new_text + text[place + len(old_text) :]
        replace_file(root, path, _encoded(edited))
    return f"Edited {path} at line {_line_of(text, place)}."


@tool(effect="local_write", idempotent=True, resource_keys=["file:{path}"])
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


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _only_place(path: str, text: str, wanted: str) -> int:
    places = []
    place = text.find(wanted)
    while place >= 0:
        places.append(place)
        # Places may overlap; then, too, it is not clear which one is meant.
        place = text.find(wanted, place + 1)
    if not places:
        raise ToolError(f"old_text occurs 0 times in {path!r}{_hint(text, wanted)}")
    if len(places) > 1:
        lines = ", ".join(str(_line_of(text, place)) for place in places[:10])
        more = ", ..." if len(places) > 10 else ""
        raise ToolError(
            f"old_text occurs {len(places)} times in {path!r} (at lines {lines}{more}), "
            "and must occur once; add lines around it"
        )
    return places[0]


def _hint(text: str, wanted: str) -> str:
    """Where the text stands with other white space; models lose indentation."""
    lines = ["".join(line.split()) for line in split_lines(text)]
    bare = ["".join(line.split()) for line in split_lines(wanted)]
    bare = bare[next((i for i, line in enumerate(bare) if line), 0) :]
    while bare and not bare[-1]:
        bare.pop()
    for start in range(len(lines) - len(bare) + 1) if bare else ():
        if lines[start : start + len(bare)] == bare:
            return f"; at line {start + 1} it stands with other white space: copy it exactly"
    return "; read the file again and copy the text exactly"


def _line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
