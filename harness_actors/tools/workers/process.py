"""The program of a worker process: does one call after the other, for one actor."""

import asyncio
import contextlib
import ctypes
import faulthandler
import glob
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import (
    MOST_TOLD,
    TOLD_CHARS,
    DeadlineToken,
    LargeResult,
    ToolContext,
    ToolOutput,
)
from harness_actors.tools.open_resources import OpenResources
from harness_actors.tools.workers.channel import Answer, Hello, Job, WorkerChannel
from harness_actors.tools.workers.marking import mark
from harness_actors.tools.workers.texts import MOST_TEXT_CHARS, WorkerTexts

PR_SET_PDEATHSIG = 1


class Serving:
    """Does the jobs that come over a channel.

    Args:
        channel: Where they come from.
        hello: What the actor said first.
    """

    def __init__(self, channel: WorkerChannel, hello: Hello) -> None:
        self._channel = channel
        self._hello = hello
        self._resources = OpenResources()
        self._tools: dict[str, Any] = {}
        # Beside the loop, so that what blocks may have one of its own; and always the same
        # thread, to which some clients are bound.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tool")
        self._thread.submit(int).result()

    def run(self) -> None:
        """Work until the actor has nothing more to be done, or is gone."""
        with asyncio.Runner() as runner:
            while (job := self._channel.receive()) is not None:
                before = _left_running(), self._resources.count
                # A call sets variables of its own, and the next one does not see them.
                answer = runner.run(self._answer(job), context=Context())
                opened = self._resources.count > before[1]
                answer["behaves"] = opened or _left_running() <= before[0]
                self._channel.send(answer)
            runner.run(self._resources.close())

    async def _answer(self, job: Job) -> Answer:
        told = Told(self._channel)
        try:
            mark(job.facts["environment"])
            tool = self._tool(job)
            result = await tool.run(job.arguments, self._context(job, told))
            return self._returned(result, job)
        except BaseException as error:  # noqa: BLE001 - each is an answer, told to the caller
            words, traceback = self._texts().describe(error, job.inline_chars)
            text, lost = self._told(words, whole=job.inline_chars is not None)
            return {"kind": "raised", "text": text, "lost": lost, "traceback": traceback}
        finally:
            told.over = True
            # Of no run: whoever ends what is left of one must leave this process to the next.
            mark(dict.fromkeys(job.facts["environment"], ""))
            _flush()

    def _tool(self, job: Job) -> Any:
        if job.blob is not None:
            try:
                self._tools[job.tool] = pickle.loads(job.blob)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                raise ToolError(
                    f"{job.name!r} cannot be loaded in a worker process: {problem}"
                ) from error
        return self._tools[job.tool]

    def _context(self, job: Job, told: "Told") -> ToolContext:
        # It is never told that nobody waits any more: then it is killed.
        return ToolContext(
            **job.facts,
            in_thread=self._in_thread,
            tell=told.tell,
            deadline=DeadlineToken(job.seconds_left),
            resources=self._resources,
        )

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        call = partial(copy_context().run, function, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _returned(self, result: str, job: Job) -> Answer:
        known = result.besides if isinstance(result, LargeResult) else result
        output = known if isinstance(known, ToolOutput) else ToolOutput("")
        text, lost = self._told(result, whole=job.inline_chars is not None)
        return {
            "kind": "returned",
            "text": text,
            "lost": lost,
            "images": output.images,
            "image_tokens": output.image_tokens,
            "tries": output.tries,
        }

    def _told(self, text: str, *, whole: bool) -> tuple[str, str]:
        """What is said of a text, and why it could not be written where it had to be."""
        large, lost = isinstance(text, LargeResult), ""
        if whole and (large or len(text) > MOST_TEXT_CHARS):
            # When it is needed: it is all that a short result can do without.
            from harness_actors.tools.workers.long_results import write_whole

            lost = write_whole(text, self._channel)
        if isinstance(text, LargeResult):
            text.close()
        return text if len(text) <= MOST_TEXT_CHARS else self._texts().shorten(text), lost

    def _texts(self) -> WorkerTexts:
        # When it is needed: these words are of a room that takes long to import.
        texts: WorkerTexts = pickle.loads(self._hello.texts)
        return texts


class Told:
    """What a call tells while it goes on.

    Args:
        channel: Where it is told.
    """

    def __init__(self, channel: WorkerChannel) -> None:
        self.over = False
        self._channel = channel
        self._left = MOST_TOLD

    def tell(self, text: str) -> bool:
        """See `ToolContext.emit`; from any thread."""
        self._left -= 1
        if self.over or self._left < 0:
            return False
        self._channel.send({"kind": "told", "text": text[:TOLD_CHARS]})
        return True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _left_running() -> int:
    """Threads and child processes that there are."""
    children = 0
    for path in glob.glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            children += len(file.read().split())
    return children + threading.active_count()


def main() -> None:
    """The program."""
    # With whoever keeps it, in whatever code it is at that time.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    channel, hello = WorkerChannel.taken()
    faulthandler.enable()
    with contextlib.suppress(OSError):
        os.chdir(hello.folder)
    Serving(channel, hello).run()
    # What a tool has left running keeps no worker alive.
    os._exit(0)
