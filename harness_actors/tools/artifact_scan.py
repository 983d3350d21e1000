"""Searches one long text for a regular expression.

`read_artifact` has it run by `scan_process`, so it imports nothing but the standard library. The
text passes through memory piece by piece: a match longer than `AHEAD_CHARS` may be cut, or missed
at such a border.
"""

import codecs
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 20
AHEAD_CHARS = 10_000
"""How much is known of what follows where a match may begin, and of what stands before it."""
SHOWN_BEFORE, SHOWN_AFTER = 100, 200
"""What is shown of a place: characters before the match, and from its beginning on."""
FLAGS = re.MULTILINE


def matches(
    file: BinaryIO, wanted: "re.Pattern[str]", start: int, end: float
) -> Iterator[tuple[int, str]]:
    """The matches that begin in a part of a text: at which character, and what is there.

    Args:
        file: The text, UTF-8; what is not is replaced.
        wanted: What is looked for; `^` and `$` are those of the whole text.
        start: The part's first character.
        end: The one after its last.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, base, done, is_last = "", 0, start, False
    while not is_last and done < end:
        piece = file.read(PIECE_BYTES)
        is_last = not piece
        text += decoder.decode(piece, final=is_last)
        # Up to here, what follows is known as far as it may matter.
        known = base + len(text) - (0 if is_last else AHEAD_CHARS)
        for match in wanted.finditer(text, max(0, done - base)) if done < known + is_last else ():
            at = base + match.start()
            if at >= min(known + is_last, end):
                break
            yield at, _shown(text, match.start())
            done = max(done, base + match.end())
        done = max(done, known)
        left = max(0, min(len(text), done - base - AHEAD_CHARS))
        text, base = text[left:], base + left


def _shown(text: str, place: int) -> str:
    before = text[max(0, place - SHOWN_BEFORE) : place]
    return (before + text[place : place + SHOWN_AFTER]).replace("\n", "⏎").replace("\r", "")


def answers(question: dict[str, Any], wanted: "re.Pattern[str]") -> Iterator[dict[str, Any]]:
    """The places of a text that match, and whether there are more; see `scan_process`."""
    end = float("inf") if question["end"] is None else question["end"]
    left = question["most"]
    with open(question["file"], "rb", buffering=0) as file:
        for at, text in matches(file, wanted, question["start"], end):
            if not left:
                yield {"done": True, "more": at}
                return
            yield {"at": at, "text": text}
            left -= 1
    yield {"done": True}
