"""Runs a shell command with a time limit, bounded output, and no process left behind."""

import asyncio
import fcntl
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from harness_actors.tools.output import OUTPUT_BYTES, BoundedOutput
from harness_actors.tools.processes import end_processes, read_process
from harness_actors.tools.spawn import spawn_watched

MARK = "HARNESS_COMMAND"
"""Variable that tells the processes of one command from all others."""
GRACE_S = 0.5
"""How long output is awaited after the shell ended, from what it left in the background."""
READ_BYTES = 1 << 18
READ_PAUSE_S = 0.001
"""Pause after a full read, so that a command that only prints leaves the loop to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended.

    Attributes:
        exit_code: Of the shell; 128 and the signal where a signal ended it. None where
            the time was up.
        output: What it printed, stdout and stderr in order, with a note where the
            middle was left out.
        output_open: Something that it left in the background still held the output.
        killed: Processes that were killed at the end.
    """

    exit_code: int | None
    output: str
    output_open: bool
    killed: int

    @property
    def timed_out(self) -> bool:
        return self.exit_code is None


async def run_shell(
    command: str,
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    output_bytes: int = OUTPUT_BYTES,
    leave_background: bool = False,
) -> CommandResult:
    """Run a command in a session of its own.

    When the time is up, or the caller is cancelled, it is killed with all that it
    started; this returns when they are gone.

    Args:
        command: For bash, or for sh where there is none.
        folder: Where it runs.
        environment: All variables that it gets, beside a mark of its own.
        timeout_s: When it is killed, in seconds.
        output_bytes: How much of its output is kept.
        leave_background: Let what it left in the background go on after it ended.

    Raises:
        OSError: It could not be started; `folder` may be gone.
    """
    mark = {MARK: token_hex(8)}
    output = BoundedOutput(output_bytes)
    shell = _Shell(command, folder, {**environment, **mark}, output)
    keep = False
    try:
        async with asyncio.timeout(timeout_s):
            await shell.exited.wait()
            await shell.drained(GRACE_S)
        keep = leave_background
    except TimeoutError:
        keep = leave_background and shell.exited.is_set()
    finally:
        timed_out = not shell.exited.is_set()
        killed = 0 if keep else await _to_the_end(shell.end(mark))
        shell.close()
    return CommandResult(
        exit_code=None if timed_out else shell.exit_code,
        output=output.text(),
        output_open=not shell.ended.is_set(),
        killed=killed,
    )


async def _to_the_end(work: Coroutine[Any, Any, int]) -> int:
    """Await something that must end even if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


class _Shell:
    """One running shell, watched by the event loop."""

    def __init__(
        self, command: str, folder: Path, environment: Mapping[str, str], output: BoundedOutput
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._output = output
        self._resume: asyncio.TimerHandle | None = None
        self.exited = asyncio.Event()
        self.exit_code = 0
        """Once it exited; 128 and the signal where a signal ended it."""
        self.ended = asyncio.Event()
        """The output did; nobody holds it any more."""
        self._pipe, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            os.set_blocking(write_end, True)
            with suppress(OSError):
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, READ_BYTES)
            self._pid, self._handle = spawn_watched(command, folder, environment, write_end)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)
        # It stays in the table until it is waited for.
        self._process = read_process(self._pid)
        self._loop.add_reader(self._handle, self._on_exit)
        self._loop.add_reader(self._pipe, self._on_output)

    async def drained(self, grace_s: float) -> None:
        """Wait for the end of the output, for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.ended.wait()

    async def end(self, mark: Mapping[str, str]) -> int:
        """Kill what is left of the command; returns when it is gone."""
        root = None if self.exited.is_set() else self._process
        killed = await end_processes(mark, root=root)
        await self.exited.wait()
        await self.drained(GRACE_S)
        return killed

    def close(self) -> None:
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._pipe)
        self._loop.remove_reader(self._handle)
        os.close(self._pipe)
        os.close(self._handle)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._handle)
        try:
            _, status = os.waitpid(self._pid, 0)
            code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            # Something else in this process waits for all children; the code is lost.
            code = 255
        self.exit_code = 128 - code if code < 0 else code
        self.exited.set()

    def _on_output(self) -> None:
        try:
            data = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return
        self._output.add(data)
        if not data:
            self._loop.remove_reader(self._pipe)
            self.ended.set()
        elif len(data) == READ_BYTES:
            self._loop.remove_reader(self._pipe)
            self._resume = self._loop.call_later(READ_PAUSE_S, self._read_on)

    def _read_on(self) -> None:
        self._loop.add_reader(self._pipe, self._on_output)
