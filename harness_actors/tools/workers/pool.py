"""The worker processes of an actor: a bounded number, reused while they behave."""

import asyncio
import hashlib
import os
import pickle
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from harness_actors.errors import ToolError
from harness_actors.ports import LargeResult, ToolContext, ToolOutput, ToolProcesses
from harness_actors.tools.open_resources import CLOSE_WITHIN_S
from harness_actors.tools.workers.channel import Answer, Hello, Job
from harness_actors.tools.workers.failure import WorkerToolError
from harness_actors.tools.workers.marking import with_room
from harness_actors.tools.workers.texts import WorkerTexts
from harness_actors.tools.workers.worker import Worker, facts_of, hello_for

IDLE_S = 60.0
"""How long a worker stays that has nothing to do."""
MOST_TOOLS = 64
"""Tools that a worker keeps; one that has more is replaced."""
KILL_AWAITED_S = 0.2
"""How long a call that is stopped waits until its process is gone, which it is soon."""
KILLED = "Its process was killed with all that it had started."


class CallWorker(Protocol):
    """A process that does calls, one at a time; see `Worker`."""

    known: set[str]
    behaves: bool

    @property
    def is_alive(self) -> bool: ...

    def fits(self, marks: Mapping[str, str]) -> bool: ...

    async def call(self, job: Job, context: ToolContext) -> Answer: ...

    async def end(self) -> None: ...

    def leave(self) -> None: ...

    async def gone(self) -> None: ...


StartWorker = Callable[[ToolProcesses, Mapping[str, str], Hello], Awaitable[CallWorker]]
"""Starts one with these variables; raises `OSError` where it cannot."""


class WorkerPool:
    """Answers the port `ToolWorkers`.

    A worker serves one call at a time, of any run, and says in its environment of which. It is
    killed where its call is stopped, and replaced where it leaves something running.

    Args:
        processes: Starts them, below what ends them with this process.
        environment: All variables that they get, except for those of a call.
        pack: Pickles a tool with its user's code; raises whatever it likes.
        texts: How results and failures are told.
        most: How many there are at most; None for one per core.
        idle_s: How long one stays that has nothing to do, in seconds.
        start: Starts a worker.
    """

    def __init__(
        self,
        processes: ToolProcesses,
        *,
        environment: Callable[[], Mapping[str, str]],
        pack: Callable[[Any], bytes],
        texts: WorkerTexts,
        most: int | None = None,
        idle_s: float = IDLE_S,
        start: StartWorker = Worker.start,
    ) -> None:
        self.most = most or max(1, len(os.sched_getaffinity(0)))
        self._processes = processes
        self._environment = environment
        self._pack = pack
        self._texts = pickle.dumps(texts)
        self._idle_s = idle_s
        self._start = start
        self._places = asyncio.Semaphore(self.most)
        self._idle: list[tuple[CallWorker, asyncio.TimerHandle]] = []
        self._packed: weakref.WeakKeyDictionary[Any, tuple[str, bytes]] = (
            weakref.WeakKeyDictionary()
        )
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def idle(self) -> int:
        """Workers that have nothing to do."""
        return len(self._idle)

    async def run(self, tool: Any, arguments: str, context: ToolContext) -> str:
        name: str = tool.spec.name
        packed = await self._pickled(tool, name)
        try:
            await self._places.acquire()
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(f"It has not begun: all {self.most} worker processes are busy.")
            raise
        try:
            return await self._run(name, packed, arguments, context)
        finally:
            self._places.release()

    async def close(self) -> None:
        """Let all close what they have open; those that are busy then are killed by others."""
        self._closed = True
        for worker, timer in list(self._idle):
            timer.cancel()
            self._retire(worker)
        if self._ending:
            await asyncio.wait(set(self._ending))

    async def _run(
        self, name: str, packed: tuple[str, bytes], arguments: str, context: ToolContext
    ) -> str:
        worker = await self._lent(context.environment)
        digest, blob = packed
        job = Job(
            tool=digest,
            name=name,
            blob=None if digest in worker.known else blob,
            arguments=arguments,
            seconds_left=context.deadline.seconds_left(),
            facts=facts_of(context),
            inline_chars=None if context.artifacts is None else context.artifacts.inline_chars,
        )
        try:
            answer = await worker.call(job, context)
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(KILLED)
            # On a busy machine that takes longer than whoever stops a call waits for it.
            await asyncio.wait((self._begin(worker.end()),), timeout=KILL_AWAITED_S)
            raise
        except GeneratorExit:
            # Nobody is left who could wait for its end.
            raise
        except BaseException:
            await self._end(worker)
            raise
        worker.known.add(digest)
        if worker.behaves and len(worker.known) <= MOST_TOOLS and not self._closed:
            self._put_back(worker)
        else:
            await self._end(worker)
        text: str = answer["text"]
        if answer["kind"] == "raised":
            raise WorkerToolError(text, answer["traceback"])
        if answer["lost"]:
            raise WorkerToolError(text, "")
        if not answer["images"] and answer["tries"] == 1:
            return text
        large = text if isinstance(text, LargeResult) else None
        output = ToolOutput(
            text if large is None else "",
            images=tuple(answer["images"]),
            image_tokens=answer["image_tokens"],
            tries=answer["tries"],
        )
        return output if large is None else large.beside(output)

    async def _pickled(self, tool: Any, name: str) -> tuple[str, bytes]:
        """A tool's pickle, with the hash of it; made once for each."""
        if (known := self._packed.get(tool)) is not None:
            return known
        try:
            blob = await asyncio.get_running_loop().run_in_executor(None, self._pack, tool)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ToolError(
                f"{name!r} cannot be sent to a worker process: {problem}; "
                "what cannot be pickled is to be opened there, by a resource"
            ) from error
        self._packed[tool] = packed = (hashlib.sha256(blob).hexdigest(), blob)
        return packed

    async def _lent(self, marks: Mapping[str, str]) -> CallWorker:
        while self._idle:
            # The newest: the others may go, if one is enough.
            worker, timer = self._idle.pop()
            timer.cancel()
            if worker.is_alive and worker.fits(marks):
                return worker
            await self._end(worker)
        given = with_room(marks)
        variables = {**self._environment(), **given}
        try:
            return await self._start(self._processes, variables, hello_for(self._texts, given))
        except OSError as error:
            raise ToolError(f"{error.strerror or error}") from None

    def _put_back(self, worker: CallWorker) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._idle_s, self._retire, worker)
        self._idle.append((worker, timer))

    def _retire(self, worker: CallWorker) -> None:
        self._idle = [kept for kept in self._idle if kept[0] is not worker]
        worker.leave()
        self._begin(self._leave(worker))

    async def _leave(self, worker: CallWorker) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S + 0.5):
                await worker.gone()
        await worker.end()

    async def _end(self, worker: CallWorker) -> None:
        """Kill a worker, also where the caller is cancelled once more meanwhile."""
        await asyncio.shield(self._begin(worker.end()))

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task
