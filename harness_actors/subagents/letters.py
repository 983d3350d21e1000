"""What a model is told of agents beside it, and by the one above it, before its next answer."""

import re
from collections.abc import Mapping, Sequence

from harness_actors.messages import Message
from harness_actors.state import COORDINATOR, Letter

ENDED = "Of the agents that you sent out in the background:"
SAID = "Whoever sent you out says:"
_LOOKS_LIKE_OURS = re.compile(
    r"^(?=\[[\w-]+ (?:completed|failed|cancelled|timed_out|lost)\]$"
    rf"|{re.escape(ENDED)}$|{re.escape(SAID)}$)",
    re.MULTILINE,
)
"""Where a line of what an agent says begins that could be taken for one of the harness."""
_HEADING = "[{sender} {status}]"


def words_of(letters: Sequence[Letter]) -> str:
    """What some letters say, in one text; there is one at least."""
    said = [letter.text for letter in letters if not letter.sender]
    ended = [letter for letter in letters if letter.status is not None]
    parts = [SAID, *said] if said else []
    # Of several the newest holds.
    parts += [letter.text for letter in letters if letter.sender == COORDINATOR][-1:]
    if ended:
        parts += [ENDED, *map(_section, ended)]
    return "\n\n".join(parts)


def told_before(log: Sequence[Message], handle: str, known: Mapping[str, str]) -> str | None:
    """What a run was told of a child that has ended.

    Args:
        log: The conversation of the run.
        handle: The child.
        known: How each child beside it has ended, by its handle.

    Returns:
        Heading and words; None where the conversation does not have it.
    """
    wanted = _heading(handle, known[handle])
    headings = {_heading(one, status) for one, status in known.items() if status}
    for message in reversed(log):
        if message.role != "user" or not message.by_harness:
            continue
        parts = message.text.split("\n\n")
        at = next((n for n, part in enumerate(parts) if _first_line(part) == wanted), None)
        if at is None or ENDED not in parts[:at]:
            continue
        after = parts[at + 1 :]
        rest = next((n for n, part in enumerate(after) if _first_line(part) in headings), None)
        return "\n\n".join((parts[at], *after[:rest]))
    return None


def tells_of(message: Message, handle: str) -> bool:
    """Whether a message of the harness tells that a child beside its run has ended."""
    _, found, ends = message.text.partition(ENDED)
    heading = re.compile(rf"^\[{re.escape(handle)} [a-z_]+\]$", re.MULTILINE)
    return bool(found) and heading.search(ends) is not None


def _section(letter: Letter) -> str:
    said = _LOOKS_LIKE_OURS.sub("> ", letter.text)
    return f"{_heading(letter.sender, letter.status or '')}\n{said}"


def _heading(sender: str, status: str) -> str:
    return _HEADING.format(sender=sender, status=status)


def _first_line(part: str) -> str:
    return part.partition("\n")[0]
