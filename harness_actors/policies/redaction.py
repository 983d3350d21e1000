"""Taking secrets out of texts: whole ones, and those that come in pieces."""

import re
from collections.abc import Sequence

from harness_actors.policies.pattern_bounds import longest_match
from harness_actors.policies.secrets import (
    KNOWN_SECRETS,
    PEM_BEGIN,
    PEM_END,
    PEM_HEAD,
    PEM_HEAD_CHARS,
    PEM_SECRET,
    TOKENS,
)

REDACTED = "[redacted]"
CONTEXT_CHARS = 256
"""What is kept of a text that has left, for patterns that look at what stands before them."""
HELD_CHARS = 1_024
"""Of more held characters, an eighth more must come before they are looked at again."""

_PEM_BEGINS = re.compile(PEM_BEGIN)
_PEM_ENDS = re.compile(PEM_END)


class Redactor:
    """Replaces secrets of known forms, and what a user's own patterns match.

    Args:
        patterns: Those, as `checked_pattern` gives them.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.secrets = re.compile("|".join((PEM_SECRET, *KNOWN_SECRETS, *patterns)))
        self.longest = max((longest_match(pattern) for pattern in patterns), default=0)

    def text(self, text: str) -> str:
        """The text without what is secret in it."""
        return self.secrets.sub(REDACTED, text)


class StreamRedactor:
    """The same for a text that comes in pieces: what may yet become a secret is held back.

    Whatever the pieces are, what leaves is together what `Redactor.text` makes of them together.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._buffer = ""
        self._at = 0
        """What stands before has left."""
        self._enough = 0
        """Held characters from which it is looked at again: looking costs what is held."""

    def feed(self, piece: str) -> str:
        """Take the next piece; what may leave by now."""
        self._buffer += piece
        if len(self._buffer) - self._at < self._enough:
            return ""
        out = self._leave(self._safe())
        held = len(self._buffer) - self._at
        self._enough = held + held // 8 if held > HELD_CHARS else 0
        return out

    def end(self) -> str:
        """The text is over; all that was held back."""
        left = self._leave(len(self._buffer))
        self._buffer, self._at, self._enough = "", 0, 0
        return left

    def _leave(self, safe: int) -> str:
        out: list[str] = []
        for found in self._redactor.secrets.finditer(self._buffer, self._at):
            if found.start() >= safe:
                break
            out += (self._buffer[self._at : found.start()], REDACTED)
            self._at = found.end()
        if safe > self._at:
            out.append(self._buffer[self._at : safe])
            self._at = safe
        if self._at > CONTEXT_CHARS:
            self._buffer = self._buffer[self._at - CONTEXT_CHARS :]
            self._at = CONTEXT_CHARS
        return "".join(out)

    def _safe(self) -> int:
        """Up to where a match may begin that cannot grow any more."""
        text, begin = self._buffer, self._at
        safe = len(text) - self._redactor.longest
        tail = _token_start(text, begin)
        safe = min(safe, tail)
        key = text.find(PEM_HEAD, begin)
        while key != -1 and key < safe:
            if _PEM_BEGINS.match(text, key) is None:
                grows = len(text) - key < PEM_HEAD_CHARS
            else:
                ends = _PEM_ENDS.search(text, key)
                grows = ends is None
            if grows:
                return max(begin, key)
            key = text.find(PEM_HEAD, key + 1)
        return max(begin, safe)


def _token_start(text: str, begin: int) -> int:
    """Where the last `TOKENS` parts of a text begin that white space separates."""
    at = start = len(text)
    for _ in range(TOKENS):
        while at > begin and not text[at - 1].isspace():
            at -= 1
        start = at
        while at > begin and text[at - 1].isspace():
            at -= 1
    return start
