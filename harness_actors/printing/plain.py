"""Texts made harmless for a terminal, which obeys whatever escape sequence it is sent.

With one a text could retitle the window, write to the clipboard, clear the screen or redraw what
stands there. Nothing is left out: a control character is shown as the picture that Unicode has
for it (``␛``), or by its number, so that a person sees that it was there.
"""

import json
import logging
import re
import sys
from typing import IO, Any

# C0 without tab and newline, DEL, C1, what turns the direction of a text, what some take for the
# end of a line, and halves of surrogate pairs, which cannot be printed at all.
_HARMFUL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029"
    r"\ud800-\udfff"
)
_IN_BLOCK = re.compile(f"\r\n|[{_HARMFUL}]")
_IN_LINE = re.compile(f"[\t\n{_HARMFUL}]")
_IN_JSON = re.compile(f"[{_HARMFUL}]")
_PICTURES = 0x2400
_DELETE, _PICTURE_OF_DELETE = 0x7F, "\u2421"


def printable(text: str) -> str:
    r"""A text of any number of lines, as it may be printed.

    >>> printable("one\r\n\ttwo \x1b[2J \x9b2J")
    'one\n\ttwo ␛[2J \\x9b2J'
    """
    # Nearly all are, and this tells it in a hundredth of the time that a pattern needs.
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _IN_BLOCK.sub(_shown, text)


def one_line(text: str) -> str:
    r"""A text that stands among others in a line, such as an id or the name of a file.

    >>> one_line("a\nfake line")
    'a␊fake line'
    """
    return text if text.isprintable() else _IN_LINE.sub(_shown, text)


def json_line(value: Any, *, ensure_ascii: bool = True) -> str:
    """A value as a line of JSON, in which everything that is harmful is escaped as JSON has it.

    Args:
        value: A plain value.
        ensure_ascii: Escape all that is not ASCII.
    """
    return escaped(json.dumps(value, ensure_ascii=ensure_ascii))


def say_json(value: Any, out: IO[str] | None = None) -> None:
    """Print a value as a line of JSON, piece by piece: it may hold whole conversations."""
    out = out or sys.stdout
    for piece in json.JSONEncoder().iterencode(value):
        out.write(escaped(piece))
    print(file=out, flush=True)


def escaped(encoded: str) -> str:
    """Text that is JSON already, with everything in it escaped that is harmful."""
    # As in `printable`. Outside of strings JSON has none of them.
    if encoded.isprintable():
        return encoded
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def say(text: str, out: IO[str] | None = None) -> None:
    """Print a text for people, at once.

    Args:
        text: Any text.
        out: Where to; stdout by default.
    """
    print(printable(text), file=out or sys.stdout, flush=True)


class PlainFormatter(logging.Formatter):
    """Formats what is logged for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _shown(found: re.Match[str]) -> str:
    if found[0] == "\r\n":
        return "\n"
    code = ord(found[0])
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return _PICTURE_OF_DELETE
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
