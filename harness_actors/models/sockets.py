"""How many calls a process may make at once: each has a socket, which is a file."""

import resource

RESERVED_FILES = 256
"""Files of a process that are not for calls: Ray's connections, the journal, processes of tools."""
_ENOUGH = 1 << 20
"""Where there is no limit, or a larger one."""


def sockets_at_most() -> int:
    """Sockets for calls that this process may have; its limit of files is raised before.

    Raised to what it may be: the usual soft limit is 1,024 files.
    """
    return _sockets(_raised())


def sockets_allowed() -> int:
    """Sockets for calls that a process with this one's limits may have; no limit is changed."""
    return _sockets(file_limit())


def file_limit() -> int:
    """Files that a process like this one may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _sockets(files: int) -> int:
    if files == resource.RLIM_INFINITY:
        return _ENOUGH
    # Where there are few files, half of them are for calls all the same.
    return min(_ENOUGH, max(files - RESERVED_FILES, files // 2, 1))


def _raised() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        # Some systems refuse an unlimited one.
        return soft
    return hard
