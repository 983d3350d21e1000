"""`read_artifact`: how a model reads on in a result that was too long for the conversation."""

from codecs import getincrementaldecoder
from pathlib import Path
from typing import BinaryIO

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.ports.artifacts import PIECE_BYTES
from harness_actors.tools.function import tool
from harness_actors.tools.scanning import scan
from harness_actors.tools.stopping import check_stopped

MAX_PATTERN_CHARS = 10_000
MESSAGE_CHARS = 6_000
"""Of a message, what is shown at once: it was left out because the window is small."""
MAX_PLACES = 20
"""Matches that one search shows."""
HEADER_CHARS = 400
"""What a result says besides the artifact's own text, at most."""
PLACE_CHARS = 340
"""What one match takes of a result, at most."""

_SCAN = Path(__file__).with_name("scan_process.py")


@tool(effect="read_only")
def read_artifact(
    id: str,
    context: ToolContext,
    start: int = 0,
    end: int | None = None,
    pattern: str | None = None,
) -> str:
    """Read on in a result that is kept as an artifact, or in a message that is not shown in full.

    Without a pattern, the characters from start to end are shown, as many as there is room for.
    With one, the places between them that match, each with its position to read on from.

    Args:
        id: As the conversation names it: an artifact such as "a0123456789", a message as "m120".
        start: The first character, counted from 0; below 0, from the end.
        end: The character after the last; left out, as far as there is room.
        pattern: Python regular expression; one that is faulty is searched as plain text.
    """
    if pattern is not None and not 0 < len(pattern) <= MAX_PATTERN_CHARS:
        raise ToolError(f"pattern must have 1 to {MAX_PATTERN_CHARS:,} characters")
    file, room = _opened(id, context)
    with file:
        if start < 0:
            start = max(0, _length(file) + start)
        if end is not None and end <= start:
            raise ToolError(f"end must be above start, which is {start:,}, and is {end:,}")
        if pattern is None:
            return _page(file, start, end, room)
        return _search(file, start, end, pattern, room)


def _opened(id: str, context: ToolContext) -> tuple[BinaryIO, int]:
    """What is named, and how many characters of it are shown at once."""
    artifacts, messages = context.artifacts, context.messages
    if messages is not None and id.startswith("m"):
        return messages.open(id), MESSAGE_CHARS
    if artifacts is None:
        raise ToolError("No results are kept as artifacts in this run.")
    return artifacts.open(id), artifacts.inline_chars - HEADER_CHARS


def _page(file: BinaryIO, start: int, end: int | None, room: int) -> str:
    stop = start + room if end is None else min(end, start + room)
    text, total = excerpt(file, start, stop)
    if start >= total:
        raise ToolError(f"start is {start:,}, and the artifact has {total:,} characters")
    stop = start + len(text)
    more = f"; the next begins at start={stop}" if stop < total else ""
    return f"[Characters {start:,} to {stop:,} of {total:,}{more}.]\n{text}"


def _search(file: BinaryIO, start: int, end: int | None, pattern: str, room: int) -> str:
    question = {
        "module": "artifact_scan",
        "file": file.fileno(),
        "pattern": pattern,
        "start": start,
        "end": end,
        "most": min(MAX_PLACES, room // PLACE_CHARS),
    }
    answers = scan(_SCAN, question, file.fileno())
    places = [answer for answer in answers if "at" in answer]
    lines = [f"{place['at']}: {place['text']}" for place in places] or ["No matches."]
    fault, last = answers[0].get("fault") if answers else None, answers[-1] if answers else {}
    if fault:
        lines.append(f"[Not a regular expression ({fault[:100]}); searched for it as plain text.]")
    if "more" in last:
        lines.append(f"[There are more matches; go on with start={last['more']}.]")
    elif "done" not in last:
        why = last.get("broken", "its process ended")
        lines.append(f"[Stopped because {why}; simplify the pattern, or narrow start and end.]")
    return "\n".join(["[Matches, each after the position of its first character.]", *lines])


def excerpt(file: BinaryIO, start: int, stop: int) -> tuple[str, int]:
    """The characters of a text from one to another, and how many it has.

    Args:
        file: The text from its beginning, UTF-8; what is not is replaced.
        start: The first, from 0.
        stop: The one after the last; what is not there is left out.
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    found, passed, is_last = [], 0, False
    while not is_last:
        check_stopped()
        piece = file.read(PIECE_BYTES)
        is_last = not piece
        text = decoder.decode(piece, final=is_last)
        found.append(text[max(0, start - passed) : max(0, stop - passed)])
        passed += len(text)
    return "".join(found), passed


def _length(file: BinaryIO) -> int:
    total = excerpt(file, 0, 0)[1]
    file.seek(0)
    return total
