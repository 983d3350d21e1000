"""Starts the shell of a command."""

import errno
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def spawn_watched(
    command: str, folder: Path, environment: Mapping[str, str], output: int
) -> tuple[int, int]:
    """Start a shell in a session of its own, without input.

    Args:
        command: What it runs.
        folder: Where.
        environment: All its variables.
        output: Descriptor that it prints to.

    Returns:
        Its pid, and a descriptor that tells of its end.

    Raises:
        OSError: It could not be started.
    """
    try:
        pid = _spawn(command, folder, environment, output)
    except ValueError:
        # A NUL, or half of a surrogate pair.
        raise OSError(errno.EINVAL, "a character that no shell takes") from None
    try:
        return pid, os.pidfd_open(pid)
    except OSError:
        # Too many open files: what cannot be watched must not run.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _spawn(command: str, folder: Path, environment: Mapping[str, str], output: int) -> int:
    """Start the shell; returns its pid.

    By `posix_spawn`, as it alone can reset the signal mask of the child without
    touching that of this thread: Ray's workers have SIGINT blocked, and if one is
    pending, to unblock it for a moment would end the worker.
    """
    # The first shell changes folder, which posix_spawn cannot, and becomes the second.
    enter = 'cd -- "$1" && unset OLDPWD && exec "$0" -c "$2"'
    program = [SHELL, "-c", enter, SHELL, str(folder), command]
    with open(os.devnull, "rb") as nothing:
        actions = [
            (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
            *((os.POSIX_SPAWN_CLOSE, handle) for handle in _inheritable()),
        ]
        return os.posix_spawn(
            SHELL,
            program,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )


def _inheritable() -> list[int]:
    """Open files that native code of this process would pass on to a command."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found
