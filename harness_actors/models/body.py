"""The body of a request: encoded messages that are joined when they are sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PIECE_BYTES = 128 * 1024
"""Above this, joined memory comes fresh from the system, page by page: sending 4 MB in one
piece can take three times as long."""


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The bytes of a request.

    Attributes:
        head: What stands before the items.
        items: Commas stand between them.
        tail: What stands after them.
    """

    head: bytes
    items: Sequence[bytes]
    tail: bytes

    def __len__(self) -> int:
        commas = max(0, len(self.items) - 1)
        return len(self.head) + sum(map(len, self.items)) + commas + len(self.tail)

    def __bytes__(self) -> bytes:
        return b"".join((self.head, b",".join(self.items), self.tail))

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces of the same number of items, about `PIECE_BYTES` on average."""
        wanted = 1 + len(self) // PIECE_BYTES
        if wanted == 1 or not self.items:
            yield bytes(self)
            return
        # By number, because looking at the size of each would cost more than is won.
        step = 1 + len(self.items) // wanted
        for start in range(0, len(self.items), step):
            part = list(self.items[start : start + step])
            if start == 0:
                part[0] = self.head + part[0]
            if start + step < len(self.items):
                part.append(b"")  # for the comma after it
            else:
                part[-1] += self.tail
            yield b",".join(part)
