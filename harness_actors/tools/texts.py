"""Text files as tools show them: whole, in numbered lines, and cut where they are long."""

from harness_actors.errors import ToolError
from harness_actors.tools.paths import open_to_read
from harness_actors.tools.way import Root

MAX_FILE_BYTES = 20_000_000
"""Larger files are not read: a file is held in memory while a part of it is shown."""
MAX_CHARS = 100_000
"""Characters that one result holds at most."""


def read_text(root: Root, path: str) -> str:
    """The text of a file, its line ends as they are.

    Raises:
        ToolError: It is not there, too large, or not UTF-8 text.
    """
    with open_to_read(root, path) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{path!r} is larger than {MAX_FILE_BYTES:,} bytes; look at parts of it with "
            "run_command, for example with head, tail or sed -n"
        )
    return decode_text(path, data)


def decode_text(path: str, data: bytes) -> str:
    """The text of a file's bytes.

    Raises:
        ToolError: They are not UTF-8 text.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(
            f"{path!r} is not UTF-8 text ({len(data):,} bytes); look at it with run_command"
        )
    return text


def split_lines(text: str) -> list[str]:
    r"""The lines of a text with their ends; only ``\n`` ends a line.

    >>> split_lines("a\r\nb\x0cc")
    ['a\r\n', 'b\x0cc']
    """
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def show_whole(path: str, text: str) -> str:
    """A whole file, unchanged; a long one only in its first lines, with a note."""
    if len(text) <= MAX_CHARS:
        return text
    lines = split_lines(text)
    count = _fitting(lines)
    if count == 0:
        return (
            f"{text[:MAX_CHARS]}\n[Cut after {MAX_CHARS:,} characters: line 1 of {path} is longer.]"
        )
    return "".join(lines[:count]) + _rest(path, count, len(lines))


def show_lines(path: str, text: str, start: int, end: int) -> str:
    """Some lines of a file, numbered.

    Args:
        path: Its name, as the model gave it.
        text: The whole file.
        start: First line, from 1; less counts as 1.
        end: Last line; -1 or more than there are means the last.

    Raises:
        ToolError: `end` is before `start`.
    """
    lines = split_lines(text)
    start = max(1, start)
    last = len(lines) if end == -1 else min(end, len(lines))
    if start > len(lines):
        return f"[{path} has {len(lines)} lines; there is nothing from line {start} on]"
    if last < start:
        raise ToolError(f"end_line {end} is before start_line {start}; -1 means the last line")
    width = len(str(last))
    numbered = [
        f"{number:>{width}}\t{line}"
        for number, line in enumerate(lines[start - 1 : last], start=start)
    ]
    count = _fitting(numbered)
    shown = "".join(numbered[:count]) if count else numbered[0][:MAX_CHARS] + "\n"
    last_shown = start + max(count, 1) - 1
    head = f"[Lines {start}-{last_shown} of {len(lines)} in {path}]\n"
    return head + shown + (_rest(path, last_shown, len(lines)) if last_shown < last else "")


def _fitting(lines: list[str]) -> int:
    """How many of the first lines fit into one result."""
    room = MAX_CHARS
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return count
    return len(lines)


def _rest(path: str, last: int, total: int) -> str:
    return f"[Cut after line {last} of {total} in {path}; read on with start_line={last + 1}.]"
