"""Files that a user hands over: read whole, with bounds."""

import os
import stat
from pathlib import Path

from harness_actors.errors import BadInputError


def read_given(path: Path, most_bytes: int, what: str) -> bytes:
    """The content of a file that is one: a pipe may have no end, and a device none at all.

    Args:
        path: The file.
        most_bytes: How much it may have.
        what: What it describes, as in "which no agent has".

    Raises:
        BadInputError: It is no file, or too large.
        OSError: It cannot be read.
    """
    # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadInputError(str(path), ("it is no file",))
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        problem = f"it has more than {most_bytes:,} bytes, which no {what} has"
        raise BadInputError(str(path), (problem,))
    return data
