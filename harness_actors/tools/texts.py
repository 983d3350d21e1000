"""Text files as tools show them: whole, in numbered lines, and cut where they are long.

A text is the bytes of its file: a large one costs its size and no more, whatever is in it. The
event loop stands still while one call of the interpreter works on it, so a large one is gone
through in pieces.
"""

import codecs

from harness_actors.errors import ToolError
from harness_actors.tools.paths import open_to_read
from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.way import Root

MAX_FILE_BYTES = 20_000_000
"""Larger files are not read: a file is held in memory while a part of it is shown."""
MAX_CHARS = 100_000
"""Characters that one result holds at most."""
PIECE_BYTES = 1_000_000
"""What is gone through at once: up to 10 ms, where every byte is nearly what is looked for."""

_UTF8_BYTES = 4
"""Bytes of one character, at most."""


def read_bytes(root: Root, path: str) -> bytes:
    """The bytes of a file, its line ends as they are; whether it is text is still to be checked.

    Raises:
        ToolError: It is not there, or too large.
    """
    with open_to_read(root, path) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{path!r} is larger than {MAX_FILE_BYTES:,} bytes; look at parts of it with "
            "run_command, for example with head, tail or sed -n"
        )
    return data


def check_text(path: str, data: bytes) -> None:
    """Refuse what is not UTF-8 text.

    Raises:
        ToolError: That is what it is.
    """
    if b"\0" in data:
        raise _no_text(path, data)
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for low in range(0, len(data), PIECE_BYTES):
            check_stopped()
            decoder.decode(data[low : low + PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise _no_text(path, data) from None


def find(data: bytes, wanted: bytes, start: int = 0) -> int:
    """Where the first occurrence begins from `start` on; -1 where there is none.

    Args:
        data: A text.
        wanted: What is looked for, far shorter than `PIECE_BYTES`.
        start: Where to begin.
    """
    for low in range(start, len(data) - len(wanted) + 1, PIECE_BYTES):
        check_stopped()
        place = data.find(wanted, low, low + PIECE_BYTES + len(wanted) - 1)
        if place >= 0:
            return place
    return -1


def count_line_ends(data: bytes, end: int | None = None) -> int:
    """How many lines end in a text, or before a place of it."""
    end = len(data) if end is None else end
    return sum(
        data.count(b"\n", low, min(end, low + PIECE_BYTES)) for low in range(0, end, PIECE_BYTES)
    )


def count_lines(data: bytes) -> int:
    r"""How many lines a text has; only ``\n`` ends a line, and the last one needs none.

    >>> count_lines(b""), count_lines(b"a\r\nb"), count_lines(b"a\n")
    (0, 2, 1)
    """
    return count_line_ends(data) + (data[-1:] not in (b"", b"\n"))


def split_lines(text: str) -> list[str]:
    r"""The lines of a short text with their ends.

    >>> split_lines("a\r\nb\x0cc")
    ['a\r\n', 'b\x0cc']
    """
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def show_whole(path: str, data: bytes) -> str:
    """A whole file, unchanged; a long one only in its first lines, with a note.

    Raises:
        ToolError: It is not UTF-8 text.
    """
    if len(data) <= MAX_CHARS and b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _no_text(path, data) from None
    check_text(path, data)
    text = _beginning(data, 0, len(data))
    if len(text) <= MAX_CHARS:
        return text
    end = text.rfind("\n", 0, MAX_CHARS) + 1
    if end == 0:
        return (
            f"{text[:MAX_CHARS]}\n[Cut after {MAX_CHARS:,} characters: line 1 of {path} is longer.]"
        )
    return text[:end] + _rest(path, text.count("\n", 0, end), count_lines(data))


def show_lines(path: str, data: bytes, start: int, end: int) -> str:
    """Some lines of a file, numbered.

    Args:
        path: Its name, as the model gave it.
        data: The whole file.
        start: First line, from 1; less counts as 1.
        end: Last line; -1 or more than there are means the last.

    Raises:
        ToolError: `end` is before `start`, or it is not UTF-8 text.
    """
    check_text(path, data)
    total = count_lines(data)
    start = max(1, start)
    last = total if end == -1 else min(end, total)
    if start > total:
        return f"[{path} has {total} lines; there is nothing from line {start} on]"
    if last < start:
        raise ToolError(f"end_line {end} is before start_line {start}; -1 means the last line")
    width = len(str(last))
    text = _beginning(data, _line_start(data, start), _line_start(data, last + 1))
    numbered = [
        f"{number:>{width}}\t{line}" for number, line in enumerate(split_lines(text), start=start)
    ]
    count = _fitting(numbered)
    shown = "".join(numbered[:count]) if count else numbered[0][:MAX_CHARS] + "\n"
    last_shown = start + max(count, 1) - 1
    head = f"[Lines {start}-{last_shown} of {total} in {path}]\n"
    return head + shown + (_rest(path, last_shown, total) if last_shown < last else "")


def _no_text(path: str, data: bytes) -> ToolError:
    return ToolError(
        f"{path!r} is not UTF-8 text ({len(data):,} bytes); look at it with run_command"
    )


def _beginning(data: bytes, start: int, end: int) -> str:
    """The text between two places; of a long one, one character more than a result holds."""
    end = min(end, start + _UTF8_BYTES * (MAX_CHARS + 1))
    # What was cut in the middle of a character has more than enough before it.
    return data[start:end].decode("utf-8", "ignore")[: MAX_CHARS + 1]


def _line_start(data: bytes, number: int) -> int:
    """Where a line begins, from 1; the end of the text where there is none."""
    left, place = number - 1, 0
    for step in (PIECE_BYTES, 1 + PIECE_BYTES // 1000):
        while place < len(data) and (ends := data.count(b"\n", place, place + step)) < left:
            left -= ends
            place += step
    for _ in range(left):
        place = data.find(b"\n", place) + 1
        if place == 0:
            return len(data)
    return min(place, len(data))


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
