"""The supervisor of this process, seen from here: an answer to the port `ToolProcesses`."""

import asyncio
import errno
import os
import signal
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness_actors.ports import Cover
from harness_actors.tools.processes import Process, end_carriers
from harness_actors.tools.spawn import COMMAND_VARIABLE, marked
from harness_actors.tools.supervision.channel import Outgoing, hang_up
from harness_actors.tools.supervision.descendants import is_stopped
from harness_actors.tools.supervision.frames import Frames, framed
from harness_actors.tools.supervision.keeper import NO_SUCH_CHARACTER
from harness_actors.tools.supervision.launch import Launched, launch

MOST_PROCESSES = 512
"""Processes that one command may have at once."""
REQUEST_BYTES = 4 << 20
"""No kernel takes more arguments and variables for one process."""
ANSWER_WITHIN_S = 5.0
"""How long a supervisor that is asked to end a command may be silent without being looked at."""
LOOKS = 24
"""How often it is looked at before it is killed though it runs."""
READ_BYTES = 1 << 16

SUPERVISOR_KILLED = "the process that supervises the commands of this agent was killed"
CLOSED = "the host of this agent was closed"
KEEPER_KILLED = "the process that watched it was killed"


class SupervisedProcess:
    """A command that a supervisor has."""

    def __init__(self, number: int, link: "_Link", mark: str, run_id: str) -> None:
        self.number = number
        self.mark = mark
        self.run_id = run_id
        self.stopped = ""
        self._link = link
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._exit_code = 0
        self._refusal: OSError | None = None
        self._killed = 0
        self._lost = False

    async def wait(self) -> int:
        await self._exited.wait()
        if self._refusal is not None:
            raise self._refusal
        return self._exit_code

    async def end(self) -> int:
        self._link.end(self)
        for _ in range(LOOKS):
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    await self._gone.wait()
            # One that runs, however slowly, may be all that ends what the command has started.
            if self._gone.is_set() or self._link.is_stopped():
                break
        if not self._gone.is_set():
            self._link.kill()
            await self._gone.wait()
        if self._lost:
            # Nobody has all of them below it any more.
            self._killed += await end_carriers(COMMAND_VARIABLE, {self.mark})
        return self._killed

    def hear(self, verb: str, *facts: Any) -> None:
        """Take what the supervisor says of it."""
        match verb:
            case "exited":
                self._exit(facts[0])
            case "overrun":
                self.stopped = f"it had more than {facts[0]} processes at once"
            case "gone":
                self._killed = facts[0]
                self._gone.set()
            case "refused":
                self._refusal = OSError(*facts)
                self._exit(0)
                self._gone.set()
            case "lost":
                self.lose(KEEPER_KILLED)

    def lose(self, reason: str) -> None:
        """Nobody can say any more what becomes of it."""
        self.stopped = self.stopped or reason
        self._lost = True
        self._exit(-signal.SIGKILL)
        self._gone.set()

    @property
    def is_gone(self) -> bool:
        return self._gone.is_set()

    def _exit(self, code: int) -> None:
        if not self._exited.is_set():
            self._exit_code = code
            self._exited.set()


@dataclass(eq=False, kw_only=True)
class SupervisedProcesses:
    """Starts the processes of tools, none of which outlives this process.

    Should the supervisor die, the next command gets another.

    Args:
        mark: Value of `ACTOR_VARIABLE` in the environment of this process, where processes
            that carry it die with this one; empty where they do not.
        detached: The supervisor is not to be a child of this process.
        carried: A handle that the supervisor holds as well; None for none.
        most: Processes that one command may have at once.
    """

    mark: str = ""
    detached: bool = False
    carried: int | None = None
    most: int = MOST_PROCESSES
    _closed: bool = field(default=False, init=False)
    _link: "_Link | None" = field(default=None, init=False)
    _sweeps: set[asyncio.Task[int]] = field(default_factory=set, init=False)

    def supervisor(self) -> Process | None:
        """The supervisor that is there now; started if there is none.

        Returns:
            Its process; None where it died as it was started.

        Raises:
            OSError: It could not be started.
        """
        return self._connected().process

    def start(
        self,
        program: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        run_id: str,
        cover: Cover | None = None,
    ) -> SupervisedProcess:
        if self._closed:
            raise OSError(errno.ESHUTDOWN, CLOSED)
        mark, variables = marked(environment)
        try:
            request = (
                self.most,
                [os.fsencode(part) for part in program],
                {os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
                None
                if cover is None
                else (os.fsencode(cover.folder), os.fsencode(cover.spared), cover.required),
            )
        except UnicodeEncodeError:
            raise OSError(errno.EINVAL, NO_SUCH_CHARACTER) from None
        return self._connected().start(request, output, mark=mark, run_id=run_id)

    def end_run(self, run_id: str) -> None:
        if self._link is not None:
            for process in self._link.processes():
                if process.run_id == run_id:
                    self._link.end(process)

    def close(self) -> None:
        """End all processes and the supervisor; they may take a moment longer."""
        self._closed = True
        if self._link is not None:
            self._link.close()

    def _connected(self) -> "_Link":
        if self._link is None or self._link.is_lost:
            launched = launch(self.mark, detached=self.detached, carried=self.carried)
            self._link = _Link(launched, self._sweep)
        return self._link

    def _sweep(self, lost: Sequence[SupervisedProcess]) -> None:
        """End what was left in the background; who waits for a command ends it itself."""
        sweep = asyncio.ensure_future(
            end_carriers(COMMAND_VARIABLE, {process.mark for process in lost})
        )
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._sweeps.discard)


class _Link:
    """The channel to one supervisor, with the commands that it has."""

    def __init__(
        self, launched: Launched, on_loss: Callable[[Sequence[SupervisedProcess]], None]
    ) -> None:
        self.is_lost = False
        self.process = launched.process
        self._pid = launched.pid
        self._channel = launched.channel
        # Whoever drops us without a word ends the supervisor, too.
        self._hang_up = weakref.finalize(self, hang_up, launched)
        self._on_loss = on_loss
        self._frames = Frames()
        self._outgoing: deque[Outgoing] = deque()
        self._processes: dict[int, SupervisedProcess] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0

    def processes(self) -> list[SupervisedProcess]:
        return list(self._processes.values())

    def start(
        self, request: tuple[Any, ...], output: int, *, mark: str, run_id: str
    ) -> SupervisedProcess:
        number = self._last = self._last + 1
        data = framed(("start", number, *request))
        if len(data) > REQUEST_BYTES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._channel, self._on_readable)
        process = SupervisedProcess(number, self, mark, run_id)
        self._processes[number] = process
        self._send(Outgoing(data, os.dup(output)))
        return process

    def end(self, process: SupervisedProcess) -> None:
        if not process.is_gone:
            self._send(Outgoing(framed(("end", process.number)), None))

    def kill(self) -> None:
        """Kill a supervisor that does not answer; its keepers end what it had."""
        if not self.is_lost:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def is_stopped(self) -> bool:
        return is_stopped(self._pid)

    def close(self) -> None:
        self._let_go(CLOSED)

    def _let_go(self, reason: str) -> list[SupervisedProcess]:
        """Drop the channel, so that the supervisor ends if it has not; what it had."""
        if self.is_lost:
            return []
        self.is_lost = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._channel)
            self._loop.remove_writer(self._channel)
        for outgoing in self._outgoing:
            outgoing.sent()
        self._outgoing.clear()
        self._hang_up()
        left, self._processes = self.processes(), {}
        for process in left:
            process.lose(reason)
        return left

    def _on_readable(self) -> None:
        try:
            data = self._channel.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._frames.add(data)
        while (message := self._frames.take()) is not None:
            verb, number, *facts = message
            if (process := self._processes.get(number)) is not None:
                process.hear(verb, *facts)
                if process.is_gone:
                    del self._processes[number]
        if not data:
            self._lose()

    def _lose(self) -> None:
        if left := self._let_go(SUPERVISOR_KILLED):
            self._on_loss(left)

    def _send(self, outgoing: Outgoing) -> None:
        if self.is_lost:
            outgoing.sent()
            return
        self._outgoing.append(outgoing)
        if len(self._outgoing) == 1:
            self._flush()

    def _flush(self) -> None:
        assert self._loop is not None
        try:
            while self._outgoing:
                if self._outgoing[0].send(self._channel):
                    self._outgoing.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._channel, self._flush)
        except OSError:
            self._loop.call_soon(self._lose)
        else:
            self._loop.remove_writer(self._channel)
