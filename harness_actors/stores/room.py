"""How much a journal may unpack to: a file of some kilobytes can hold gigabytes, deflated."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST_BYTES = 64 << 20
"""Longest value or message, unpacked."""
FREE_BYTES = 128 << 20
"""What one reading may take in memory, of a journal of any size."""
PER_BYTE = 64
"""And more for each byte of the file: the messages and results of real runs take 5 to 20."""
DEEPEST = 254
"""Levels of a packed value. Deeper ones are not written, and break what takes them apart."""

_EACH_BYTES = 100
"""Memory of an element of a list or a mapping, with what it is kept in."""
_WORTH_A_LOOK = 32 << 20
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def room_for(file_bytes: int) -> Iterator[None]:
    """Bound what is unpacked until the end of the block.

    Args:
        file_bytes: What the journal takes on the disk.
    """
    before = _left.set([FREE_BYTES + PER_BYTE * file_bytes])
    try:
        yield
    finally:
        _left.reset(before)


def longest() -> int:
    """Bytes that the next value may unpack to."""
    left = _left.get()
    return min(LONGEST_BYTES, FREE_BYTES if left is None else max(0, left[0]))


def take(cost_bytes: int) -> None:
    """Take room for a value that was unpacked.

    Raises:
        ValueError: There is not so much left.
    """
    left = _left.get() or [FREE_BYTES]
    left[0] -= cost_bytes
    if left[0] < 0:
        raise ValueError("it unpacks to more than a journal of its size holds")


def check_value(text: bytes) -> int:
    """What the value of a JSON text takes in memory at most, in bytes.

    Raises:
        ValueError: It is too long, or too deep.
    """
    if len(text) > LONGEST_BYTES:
        raise ValueError(f"a value has {len(text):,} bytes; {LONGEST_BYTES:,} is most")
    opened = text.count(b"[") + text.count(b"{")
    cost = len(text) + _EACH_BYTES * (opened + text.count(b","))
    if opened > DEEPEST or cost > _WORTH_A_LOOK:
        # What stands in strings opens nothing.
        bare = _STRING.sub(b"", text)
        _check_depth(bare.translate(None, _OTHERS))
        cost = len(text) + _EACH_BYTES * sum(bare.count(sign) for sign in (b"[", b"{", b","))
    return cost


def _check_depth(brackets: bytes) -> None:
    for _ in range(DEEPEST):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise ValueError(f"a value has more than {DEEPEST} levels")
