"""Users of this machine, as the system knows them."""

import pwd
from pathlib import Path


def user_of(pid: int) -> int | None:
    """Whom a process runs as; None where it has ended.

    Not by the owner of its folder in ``/proc``: a process can make that root.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    ids = next((line.split()[1:] for line in lines if line.startswith("Uid:")), None)
    return int(ids[1]) if ids else None


def name_of(user: int) -> str:
    """What a user is called."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
