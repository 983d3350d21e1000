"""A write-ahead log as its bytes say, without SQLite.

Source: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)
"""By whether the checksums take words with the highest byte first."""
_VERSION = 3007000
_PAGES = [1 << power for power in range(9, 17)]


def has_commits(log: Path) -> bool:
    """Whether a log can hold a transaction that was committed.

    Raises:
        OSError: It cannot be read.
    """
    with log.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            return False
        magic, version, page, _, *salts, sum_1, sum_2 = _HEADER.unpack(head)
        sound = magic in _MAGIC and version == _VERSION and page in _PAGES
        if not sound or _checksum(head[:24], highest_first=magic & 1) != (sum_1, sum_2):
            return False
        place = _HEADER.size
        while len(frame := file.read(_FRAME.size)) == _FRAME.size:
            number, pages_after, *frame_salts, _, _ = _FRAME.unpack(frame)
            # Of frames that are left from an earlier round of the log, the salts are others.
            if not number or frame_salts != salts:
                return False
            if pages_after:
                return True
            place += _FRAME.size + page
            file.seek(place)
    return False


def _checksum(data: bytes, *, highest_first: int) -> tuple[int, int]:
    words = struct.unpack(f"{'>' if highest_first else '<'}{len(data) // 4}I", data)
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
