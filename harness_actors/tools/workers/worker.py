"""A worker process, seen from the actor that has it."""

import asyncio
import json
import os
import pickle
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext, ToolProcess, ToolProcesses
from harness_actors.tools.workers.channel import (
    GREETING,
    LENGTH_BYTES,
    MOST_ANSWER_BYTES,
    Answer,
    Hello,
    Job,
    framed,
)
from harness_actors.tools.workers.long_results import Handover
from harness_actors.tools.workers.printed import Printed

# Where the actor finds its modules, in its order: the harness is one of them.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from harness_actors.tools.workers.process import main; main()"
)

LAST_WORDS_S = 0.2
"""How long an answer is awaited from a process that has ended."""
EXIT_WITHIN_S = 3.0
"""How long it is awaited, of a process that says nothing any more, how it ended."""
COMPLAINT_CHARS = 500


class Worker:
    """A process that does calls, one at a time.

    Args:
        process: The process.
        stream: Connected to it.
        printed: What it prints.
        marks: Variables that say whose call it serves, each with the room that it has.
    """

    def __init__(
        self,
        process: ToolProcess,
        stream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        printed: tuple[Printed, ...],
        marks: Mapping[str, int],
    ) -> None:
        self.known: set[str] = set()
        """Hashes of the tools that it has."""
        self.behaves = True
        """It has left nothing running, and may be given another call."""
        self._process = process
        self._reader, self._writer = stream
        self._printed = printed
        self._marks = marks
        self._busy = False
        self._ended = asyncio.ensure_future(process.wait())
        self._ended.add_done_callback(self._on_end)

    @classmethod
    async def start(
        cls, processes: ToolProcesses, variables: Mapping[str, str], hello: Hello
    ) -> "Worker":
        """Start one; returns when it is ready for its first call.

        Raises:
            OSError: It could not be started.
        """
        ours, theirs = socket.socketpair()
        printed = (Printed("stdout"), Printed("stderr"))
        try:
            with theirs:
                program = [sys.executable, "-P", "-c", _PROGRAM, *sys.path]
                process = processes.start(
                    program, environment=variables, output=theirs.fileno(), run_id=""
                )
            said = framed(pickle.dumps(hello))
            socket.send_fds(ours, [said], [each.write_end for each in printed])
        except BaseException:
            ours.close()
            for each in printed:
                each.close()
            raise
        finally:
            for each in printed:
                each.close_write_end()
        # From here on it is there, and must not be left behind.
        stream = await _connected(ours, process)
        worker = cls(process, stream, printed, hello.marks)
        try:
            await worker._greeted()
        except BaseException:
            await worker.end()
            raise
        return worker

    @property
    def is_alive(self) -> bool:
        return not self._ended.done()

    def fits(self, marks: Mapping[str, str]) -> bool:
        """Whether there is room in its environment to say whose call it serves."""
        return marks.keys() == self._marks.keys() and all(
            len(value.encode()) <= self._marks[name] for name, value in marks.items()
        )

    async def call(self, job: Job, context: ToolContext) -> Answer:
        """Have a call done.

        Returns:
            What became of it; its text is a `LargeResult` where that is in a file.

        Raises:
            ToolError: The process has died over it.
        """
        self._busy = True
        handover = Handover(context)
        for each in self._printed:
            each.context = copy_context()
        answering = asyncio.ensure_future(self._answer(job, context, handover))
        try:
            await asyncio.wait((answering, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                # A fork may hold the stream open.
                await asyncio.wait((answering,), timeout=LAST_WORDS_S)
            if answering.done() and answering.exception() is None:
                answer = answering.result()
                self.behaves = bool(answer["behaves"]) and self.is_alive
                return {**answer, "text": handover.taken(answer["text"], answer["lost"])}
            raise ToolError(await self._death(job.name))
        finally:
            self._busy = False
            answering.cancel()
            handover.close()
            for each in self._printed:
                each.catch_up()

    async def end(self) -> None:
        """Kill it with all that it has started; returns when that is gone."""
        self.behaves = False
        try:
            await self._process.end()
        finally:
            self.leave()

    def leave(self) -> None:
        """Let it close what it has open, and end."""
        self._writer.close()
        if not self.is_alive:
            for each in self._printed:
                each.catch_up()
                each.close()

    async def gone(self) -> None:
        """Return when it has ended by itself."""
        # What `wait` raises was raised where it started.
        await asyncio.wait((self._ended,))

    def _on_end(self, ended: "asyncio.Future[int]") -> None:
        """Nothing comes any more, unless what it answered last is still on its way."""
        if not ended.cancelled():
            ended.exception()  # told where it was started
        if not self._busy:
            self.leave()

    async def _greeted(self) -> None:
        try:
            await self._reader.readuntil(GREETING)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            with suppress(TimeoutError):
                async with asyncio.timeout(EXIT_WITHIN_S):
                    # It may not have been started at all, and says why.
                    await asyncio.shield(self._ended)
            said = getattr(error, "partial", b"").decode("utf-8", "replace").strip()
            raise OSError(f"a worker process did not start: {said[-COMPLAINT_CHARS:]}") from None

    async def _answer(self, job: Job, context: ToolContext, handover: Handover) -> Answer:
        self._writer.write(framed(pickle.dumps(job)))
        await self._writer.drain()
        while True:
            size = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "little")
            if size > MOST_ANSWER_BYTES:
                raise OSError("the worker process does not speak as it should")
            answer: Answer = json.loads(await self._reader.readexactly(size))
            match answer["kind"]:
                case "told":
                    context.emit(answer["text"])
                case "long":
                    await handover.make(self._writer.get_extra_info("socket").fileno())
                case _:
                    return answer

    async def _death(self, tool: str) -> str:
        """How it died, for the model."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_WITHIN_S):
                await asyncio.shield(self._ended)
        how = _ending(self._ended.result()) if self._ended.done() else "went away"
        if self._process.stopped:
            how = f"was killed: {self._process.stopped}"
        return (
            f"{tool!r} was cut off: its worker process {how}. "
            "What it had begun may have happened in part."
        )


async def _connected(
    ours: socket.socket, process: ToolProcess
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_unix_connection(sock=ours)
    except BaseException:
        ours.close()
        await process.end()
        raise


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def facts_of(context: ToolContext) -> dict[str, Any]:
    """What of a context travels to a worker."""
    return {
        "run_id": context.run_id,
        "call_id": context.call_id,
        "workspace": context.workspace,
        "workspace_id": context.workspace_id,
        "environment": dict(context.environment),
        "read_only": context.read_only,
    }


def hello_for(texts: bytes, marks: Mapping[str, str]) -> Hello:
    """What a worker is told that is started from here now."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = "/"
    room = {name: len(value.encode()) for name, value in marks.items()}
    return Hello(folder=folder, texts=texts, marks=room)
