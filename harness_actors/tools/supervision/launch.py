"""Starts supervisor processes."""

import fcntl
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from harness_actors.tools.processes import Process, read_process
from harness_actors.tools.spawn import SHELL, inheritable
from harness_actors.tools.supervision.supervisor import ACTOR, CARRIED, CHANNEL

ACTOR_VARIABLE = "HARNESS_ACTOR"
"""Environment variable of an actor's process, by which what it starts itself is found."""

# The package is looked for last: what is installed beside it must not stand in for modules
# of the standard library.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from harness_actors.tools.supervision.supervisor import main; main()"
)
_PACKAGE = Path(__file__).parents[3]
# The shell ends at once, and so the supervisor is nobody's child.
_DETACHED = '"$@" >/dev/null & echo $!'


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A supervisor that was started; it may still be on its way.

    Attributes:
        pid: Its process.
        process: The same as /proc shows it; None if it has died already.
        channel: To it; not blocking.
        is_child: It is a child of this process, which has to reap it.
    """

    pid: int
    process: Process | None
    channel: socket.socket
    is_child: bool


def launch(mark: str, *, detached: bool, carried: int | None = None) -> Launched:
    """Start a supervisor for this process.

    Args:
        mark: Value of `ACTOR_VARIABLE` in the environment of this process, when what carries
            it dies with this process; empty where it must not.
        detached: Not as a child: Ray kills the children of an actor that it kills, and a
            supervisor has work to do then.
        carried: A handle that it holds as well, without using it.

    Raises:
        OSError: It could not be started.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            inode = os.fstat(ours.fileno()).st_ino
            entry = f"{ACTOR_VARIABLE}={mark}" if mark else ""
            program = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_PACKAGE), entry, str(inode)]
            handles = [theirs.fileno(), *(() if carried is None else (carried,))]
            pid = _detached(program, handles) if detached else _spawn(program, handles)
    except BaseException:
        ours.close()
        raise
    ours.setblocking(False)
    return Launched(pid=pid, process=read_process(pid), channel=ours, is_child=not detached)


def _detached(program: list[str], handles: list[int]) -> int:
    readable, writable = os.pipe2(os.O_CLOEXEC)
    with open(readable, "rb") as answer:
        try:
            shell = _spawn(["/bin/sh", "-c", _DETACHED, "sh", *program], handles, writable)
        finally:
            os.close(writable)
        pid = answer.read()
    _reap(shell)
    if not pid:
        raise OSError(f"{SHELL} did not start a supervisor")
    return int(pid)


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        # Something else in this process waits for all children.
        return


def _spawn(program: list[str], handles: list[int], output: int | None = None) -> int:
    """Start a program with a channel, this process, and perhaps what it carries."""
    own = os.pidfd_open(os.getpid())
    given = dict(zip((CHANNEL, ACTOR, CARRIED), (handles[0], own, *handles[1:]), strict=False))
    # Out of the way of the numbers that they get there.
    high = {
        place: fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 10) for place, handle in given.items()
    }
    os.close(own)
    actions = [
        *((os.POSIX_SPAWN_CLOSE, handle) for handle in inheritable()),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        if output is None
        else (os.POSIX_SPAWN_DUP2, output, 1),
        *((os.POSIX_SPAWN_DUP2, handle, place) for place, handle in high.items()),
    ]
    # No key reaches it, only where the interpreter finds its own libraries.
    environment = {
        name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")
    }
    try:
        return os.posix_spawn(
            program[0],
            program,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
    finally:
        for handle in high.values():
            os.close(handle)
