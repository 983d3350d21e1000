"""Starts the processes of commands directly, as children of this process."""

import asyncio
import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from harness_actors.ports import Cover
from harness_actors.tools.processes import end_processes, read_process

SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
COMMAND_VARIABLE = "HARNESS_COMMAND"
"""Variable that tells the processes of one command from all others."""


def shell_program(command: str, folder: Path) -> list[str]:
    """What to start for a command in a folder."""
    # The first shell changes folder, which posix_spawn cannot, and becomes the second.
    enter = 'cd -- "$1" && unset OLDPWD && exec "$0" -c "$2"'
    return [SHELL, "-c", enter, SHELL, str(folder), command]


def marked(environment: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A mark for one command, and its environment with it."""
    mark = token_hex(8)
    return mark, {**environment, COMMAND_VARIABLE: mark}


class DirectProcess:
    """A child of this process, watched by the event loop."""

    stopped = ""

    def __init__(self, pid: int, mark: str) -> None:
        self._pid = pid
        self._mark = mark
        self._exited = asyncio.Event()
        self._exit_code = 0
        try:
            self._handle = os.pidfd_open(pid)
        except OSError:
            # Too many open files: what cannot be watched must not run.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        # It stays in the table until it is waited for.
        self._process = read_process(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._handle, self._on_exit)

    async def wait(self) -> int:
        await self._exited.wait()
        return self._exit_code

    async def end(self) -> int:
        root = None if self._exited.is_set() else self._process
        killed = await end_processes({COMMAND_VARIABLE: self._mark}, root=root)
        await self._exited.wait()
        return killed

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        try:
            _, status = os.waitpid(self._pid, 0)
            self._exit_code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            # Something else in this process waits for all children; the code is lost.
            self._exit_code = 255
        self._exited.set()


class DirectProcesses:
    """Starts processes as children of this one, which outlive it if it is killed.

    They see all that is there, unless it is required that they do not: then none is started.
    """

    def start(
        self,
        program: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        run_id: str,
        cover: Cover | None = None,
    ) -> DirectProcess:
        if cover is not None and cover.required:
            raise OSError(errno.ENOTSUP, "nobody is there who could cover other workspaces")
        mark, variables = marked(environment)
        try:
            pid = _spawn(program, variables, output)
        except ValueError:
            # A NUL, or half of a surrogate pair.
            raise OSError(errno.EINVAL, "a character that no shell takes") from None
        return DirectProcess(pid, mark)

    def end_run(self, run_id: str) -> None:
        """Nothing is known here of runs."""

    def close(self) -> None:
        """What was started belongs to whoever started it."""


def _spawn(program: Sequence[str], environment: Mapping[str, str], output: int) -> int:
    """Start a process in a session of its own, without input; returns its pid.

    By `posix_spawn`, as it alone can reset the signal mask of the child without
    touching that of this thread: Ray's workers have SIGINT blocked, and if one is
    pending, to unblock it for a moment would end the worker.
    """
    with open(os.devnull, "rb") as nothing:
        actions = [
            (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
            *((os.POSIX_SPAWN_CLOSE, handle) for handle in inheritable()),
        ]
        return os.posix_spawn(
            program[0],
            list(program),
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )


def inheritable() -> list[int]:
    """Open files that native code of this process would pass on to a command."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found
