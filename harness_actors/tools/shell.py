"""Runs a shell command with a time limit, bounded output, and no process left behind."""

import asyncio
import fcntl
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from harness_actors.ports import ConversationArtifacts, Cover, ToolProcess, ToolProcesses
from harness_actors.tools.output import OUTPUT_BYTES, BoundedOutput, WholeOutput
from harness_actors.tools.spawn import DirectProcesses, shell_program

T = TypeVar("T")

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
        stopped: Why it was killed before its end, if not for the time; empty where it
            was not.
        whole: All that it printed, where that is more than `output` holds and was to be kept;
            the caller's to close.
        not_kept: Why that is not there, where it was to be kept.
    """

    exit_code: int | None
    output: str
    output_open: bool
    killed: int
    stopped: str = ""
    whole: BinaryIO | None = None
    not_kept: str = ""

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
    processes: ToolProcesses | None = None,
    run_id: str = "",
    cover: Cover | None = None,
    artifacts: ConversationArtifacts | None = None,
) -> CommandResult:
    """Run a command in a session of its own.

    When the time is up, or the caller is cancelled, it is killed with all that it
    started; this returns when they are gone. Only a command that kills our processes
    above it may leave something that carries no mark of ours.

    Args:
        command: For bash, or for sh where there is none.
        folder: Where it runs.
        environment: All variables that it gets, except for a mark that is added.
        timeout_s: When it is killed, in seconds.
        output_bytes: How much of its output is kept.
        leave_background: Let what it left in the background go on after it ended.
        processes: Starts it; None to have it as a child of this process.
        run_id: The run that it is for.
        cover: What it is not to see; None for nothing.
        artifacts: Where all of its output is kept if it is more than that; None keeps no more.

    Raises:
        OSError: It could not be started; `folder` may be gone.
    """
    output = _Output(output_bytes, None if artifacts is None else WholeOutput(artifacts))
    try:
        process = (processes or DirectProcesses()).start(
            shell_program(command, folder),
            environment=environment,
            output=output.write_end,
            run_id=run_id,
            cover=cover,
        )
    except BaseException:
        output.close()
        raise
    finally:
        output.close_write_end()
    try:
        return await _attend(process, output, timeout_s, leave_background=leave_background)
    finally:
        # Where the caller is cancelled, nobody takes it.
        output.close_whole()


async def _attend(
    process: ToolProcess, output: "_Output", timeout_s: float, *, leave_background: bool
) -> CommandResult:
    """Wait for the end of a command that was started; see `run_shell`."""
    code: int | None = None
    ended = False
    try:
        async with asyncio.timeout(timeout_s):
            code = await process.wait()
            await output.drained(GRACE_S)
        ended = True
    except TimeoutError:
        ended = code is not None
    finally:
        # One that was stopped is said to be gone with all that it started.
        keep = leave_background and ended and not process.stopped
        try:
            killed = 0 if keep else await _to_the_end(_end(process, output))
            if output.is_written:
                await _to_the_end(output.seal())
            text, output_open = output.text(), not output.ended.is_set()
        finally:
            # A reader less would end what prints on in the background, by SIGPIPE.
            output.discard() if keep else output.close()
    whole, not_kept = output.take_whole()
    return CommandResult(
        exit_code=128 - code if code is not None and code < 0 else code,
        output=text,
        output_open=output_open,
        killed=killed,
        stopped=process.stopped,
        whole=whole,
        not_kept=not_kept,
    )


async def _end(process: ToolProcess, output: "_Output") -> int:
    """Kill what is left of a command; returns when it is gone."""
    killed = await process.end()
    await output.drained(GRACE_S)
    return killed


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
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


class _Output:
    """The pipe that a command prints to, read by the event loop.

    Args:
        most_bytes: How much of it is in memory.
        whole: What is given all of it, if it is more; None for nothing.
    """

    def __init__(self, most_bytes: int, whole: WholeOutput | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._kept: BoundedOutput | None = BoundedOutput(most_bytes)
        self._whole = whole
        self._writing: asyncio.Future[None] | None = None
        self._closed = self._sealed = False
        self.is_written = False
        """More was printed than is held, and all of it goes to `whole`."""
        self._resume: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()
        """Nobody holds it any more."""
        self._pipe, self.write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.write_end, True)
        with suppress(OSError):
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, READ_BYTES)
        self._loop.add_reader(self._pipe, self._on_output)

    def text(self) -> str:
        assert self._kept is not None
        return self._kept.text()

    async def drained(self, grace_s: float) -> None:
        """Wait for the end of the output, for a while."""
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self.ended.wait()
            if self._writing is None:
                return
            # A slow disk must not make it look as if somebody still printed.
            await asyncio.wait((self._writing,))

    async def seal(self) -> None:
        """Have nothing more written, and wait for what is being written."""
        self._sealed = True
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    def take_whole(self) -> tuple[BinaryIO | None, str]:
        """All of the output, which is the caller's now, and why there is none."""
        return (None, "") if self._whole is None else (self._whole.take(), self._whole.problem)

    def close_whole(self) -> None:
        if self._whole is not None:
            self._whole.close()

    def close_write_end(self) -> None:
        os.close(self.write_end)

    def discard(self) -> None:
        """Read on, and keep nothing of it, until nobody holds the other end."""
        self._kept = None
        if self.ended.is_set():
            self.close()

    def close(self) -> None:
        self._closed = True
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)

    def _on_output(self) -> None:
        try:
            data = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return
        if self._kept is not None:
            if data and self._whole is not None and self._write(self._kept, self._whole, data):
                return
            self._kept.add(data)
        if not data:
            self._loop.remove_reader(self._pipe)
            self.ended.set()
            if self._kept is None:
                self.close()
        elif len(data) == READ_BYTES:
            self._loop.remove_reader(self._pipe)
            self._resume = self._loop.call_later(READ_PAUSE_S, self._read_on)

    def _write(self, kept: BoundedOutput, whole: WholeOutput, data: bytes) -> bool:
        """Have output written where it is more than is held; False where it is not.

        The pipe is not read meanwhile: whoever prints waits for the disk, and nobody else does.
        """
        first = b"" if self.is_written else kept.all_but_more(len(data))
        if first is None or self._sealed:
            return False
        self.is_written = True
        kept.add(data)
        self._loop.remove_reader(self._pipe)
        self._writing = self._loop.run_in_executor(None, whole.write, first + data)
        self._writing.add_done_callback(self._on_written)
        return True

    def _on_written(self, _done: "asyncio.Future[None]") -> None:
        self._writing = None
        if not self._closed:
            self._read_on()

    def _read_on(self) -> None:
        self._loop.add_reader(self._pipe, self._on_output)
