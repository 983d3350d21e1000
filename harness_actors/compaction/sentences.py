"""Texts as sentences, lines and lists."""

import re
from collections.abc import Iterator

LOOKED_AT_CHARS = 4_000
"""Of a text, how much of its beginning and of its end is looked at."""
LOOKED_AT_LINES = 200
"""And of these, as many lines."""
SENTENCE_CHARS = 600
"""What is longer is no sentence, but data."""

_MARKUP = re.compile(
    r"^\s{0,20}(?:[#>]{1,6}\s|[-*+•–]\s|\(?\d{1,3}[.)]\s|\[[ xX]\]\s){0,3}\s{0,20}"
)
_ENDS = re.compile(r"(?<=[.!?])[\"')*_”’]{0,3}\s+(?=[\"'(*_`“‘]{0,3}[^\sa-z])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|resp|incl|mr|ms|dr|st)\.$", re.I)
_THINKS = re.compile(r"^(?:thoughts?|thinking|reasoning|observation|analysis)\s{0,2}:\s{0,4}", re.I)
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
_FENCE = re.compile(r"^\s{0,8}(?:```|~~~)\s{0,4}(\w{0,20})")


def ends_of(text: str) -> str:
    """The beginning and the end of a text, as much as is looked at, divided at lines.

    >>> ends_of("short")
    'short'
    """
    if len(text) > 2 * LOOKED_AT_CHARS:
        head, tail = text[:LOOKED_AT_CHARS], text[-LOOKED_AT_CHARS:]
        # What the cut goes through is no sentence.
        text = f"{head.rpartition(chr(10))[0] or head}\n\n{tail.partition(chr(10))[2] or tail}"
    if text.count("\n") > 2 * LOOKED_AT_LINES:
        lines = text.split("\n")
        text = "\n".join([*lines[:LOOKED_AT_LINES], "", *lines[-LOOKED_AT_LINES:]])
    return text


def lines_of(text: str) -> Iterator[tuple[str, str | None]]:
    """The lines of a text, each with the language of the code that it is in.

    Returns:
        Line and language; None outside of code, and an empty one where nothing names it.
    """
    language: str | None = None
    for line in text.translate(_QUOTES).splitlines():
        if fence := _FENCE.match(line):
            language = fence[1].lower() if language is None else None
        else:
            yield line, language


def prose_of(text: str) -> Iterator[str]:
    """The sentences of a text, without code and without the marks of lists and headings.

    >>> list(prose_of("# Why\\n- We use e.g. `a.b`. It works!"))
    ['Why', 'We use e.g. `a.b`.', 'It works!']
    """
    for paragraph in _paragraphs(text):
        yield from _sentences(paragraph)


def _paragraphs(text: str) -> Iterator[str]:
    """Lines that go on a sentence are joined."""
    held = ""
    for line, language in lines_of(text):
        bare = "" if language is not None else line.strip()
        goes_on = held and bare[:1].islower() and not held.endswith((".", "!", "?", ":"))
        if goes_on and len(held) < SENTENCE_CHARS:
            held = f"{held} {bare}"
            continue
        if held:
            yield held
        held = unmarked(bare)
    if held:
        yield held


def _sentences(paragraph: str) -> Iterator[str]:
    held = ""
    for part in _ENDS.split(paragraph):
        held = f"{held} {part}" if held else part
        if not _ABBREVIATED.search(held[-10:]):
            yield held.strip()
            held = ""
    if held:
        yield held.strip()


def unmarked(line: str) -> str:
    """A line without the marks of lists, quotes and headings, and without those of emphasis.

    >>> unmarked("  2. **Use** it")
    'Use it'
    """
    bare = _MARKUP.sub("", line, count=1)
    return _THINKS.sub("", bare.replace("**", "").replace("~~", "").strip(), count=1)
