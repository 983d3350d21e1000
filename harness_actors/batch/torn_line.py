"""The last line of a results file, which the death of a process may have torn."""

import os
import re
from pathlib import Path
from typing import Any

import orjson

from harness_actors.batch.durable_files import Sync

_ID = re.compile(rb'\{"id":"(?:[^"\\]|\\.)*(?:"(?P<rest>.*)|\\?\Z)', re.DOTALL)
_FIRST, _NEXT = b'{"id":"', b',"task_hash":"'


def as_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object that a line is; None where it is none."""
    try:
        plain = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return plain if isinstance(plain, dict) else None


def is_torn(line: bytes, *, first: bool) -> bool:
    """Whether a last line that is not an object is the beginning of one that we wrote.

    Args:
        line: The line.
        first: No other is before it, by which the file would be known to be ours.
    """
    # After a power cut, what was not written yet may be there as zeros.
    written = line.rstrip(b"\n\0")
    if not written:
        return not first
    if len(written) <= len(_FIRST):
        return _FIRST.startswith(written)
    found = _ID.fullmatch(written)
    if found is None:
        return False
    rest = found["rest"] or b""
    return rest.startswith(_NEXT) or _NEXT.startswith(rest)


def heal(path: Path, torn_at: int | None, *, sync: Sync = os.fsync) -> None:
    """Cut the torn last line of a file that is known to be ours, or end a whole one.

    Args:
        path: The file.
        torn_at: Where its torn last line begins; None where that is whole.
        sync: Brings an open file to the disk.

    Raises:
        OSError: It cannot be written.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        ended = file.read() in (b"", b"\n")
    if torn_at is None and ended:
        return
    with path.open("r+b") as file:
        if torn_at is None:
            file.seek(end)
            file.write(b"\n")
        else:
            file.truncate(torn_at)
        file.flush()
        sync(file.fileno())
