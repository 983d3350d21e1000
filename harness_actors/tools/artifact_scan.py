"""Searches one long text for a regular expression; a program of its own.

`read_artifact` runs this file in a process for the reason that `grep_files` runs `scan.py` in
one, and like that it imports nothing but the standard library. The text passes through memory
piece by piece: a match longer than `AHEAD_CHARS` may be cut, or missed at such a border.
"""

import codecs
import json
import re
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 20
AHEAD_CHARS = 10_000
"""How much is known of what follows where a match may begin, and of what stands before it."""
SHOWN_BEFORE, SHOWN_AFTER = 100, 200
"""What is shown of a place: characters before the match, and from its beginning on."""
MAX_MEMORY_BYTES = 250_000_000
"""Addresses that the process may take: some expressions remember each step."""


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


def main() -> None:
    """Read a question from stdin; write a line of JSON as each answer is found."""
    question: dict[str, Any] = json.load(sys.stdin)
    _bound(question["seconds"])
    try:
        _answer(question)
    except MemoryError:
        _say({"broken": f"it took more than {MAX_MEMORY_BYTES // 1_000_000} MB"})


def _bound(seconds: float) -> None:
    # Whoever asked may be killed, and a regular expression hears no signal but one that kills.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > MAX_MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, most))


def _answer(question: dict[str, Any]) -> None:
    pattern, fault = question["pattern"], None
    try:
        wanted = re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        wanted, fault = re.compile(re.escape(pattern)), str(error)
    _say({"fault": fault})
    end = float("inf") if question["end"] is None else question["end"]
    left = question["most"]
    with open(question["file"], "rb", buffering=0) as file:
        for at, text in matches(file, wanted, question["start"], end):
            if not left:
                _say({"done": True, "more": at})
                return
            _say({"at": at, "text": text})
            left -= 1
    _say({"done": True})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
