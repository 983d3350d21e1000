"""A contender at work on checkable tasks: a process of its own that is told one after the other."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.checked import CheckedTask
from benchmarks.peers.contenders import DEFAULTS
from harness_actors.testing import CheckableTask

ROOT = Path(__file__).resolve().parents[2]
TASK_S = 600.0
"""Of a task, after which it counts as one that its framework did not hold to be done."""


class Finishing:
    """The process of a contender; see `finishing`.

    Attributes:
        how: The coroutine of its script that does the tasks.
        said: What it said of tasks that it does not hold to be done, and how often.
    """

    def __init__(self, process: asyncio.subprocess.Process, prefix: str) -> None:
        self._process = process
        self._prefix = prefix
        self.how = DEFAULTS
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.said: Counter[str] = Counter()

    async def run(self, base_url: str, task: CheckableTask, timeout_s: float) -> bool:
        """Let it do a task; whether it holds it to be done."""
        told = CheckedTask(
            how=self.how,
            base_url=base_url,
            timeout_s=timeout_s,
            name=task.name,
            prompt=task.prompt,
            folder=str(task.folder),
            prefix=self._prefix,
            expected=expected_of(task),
        )
        answer = asyncio.get_running_loop().create_future()
        self._waiting[task.name] = answer
        assert self._process.stdin is not None
        self._process.stdin.write(told.as_line().encode())
        try:
            ended = await asyncio.wait_for(answer, TASK_S)
        except TimeoutError:
            ended = {"claimed": False, "said": f"did not end within {TASK_S:g} s"}
        if not ended["claimed"]:
            self.said[ended["said"]] += 1
        return bool(ended["claimed"])

    async def listen(self) -> None:
        """Hand its answers to whom they are for; when it ends, whoever waits is told so."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            ended = json.loads(line)
            if not self._waiting[ended["name"]].done():
                self._waiting[ended["name"]].set_result(ended)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RuntimeError("the contender's process ended"))


def expected_of(task: CheckableTask) -> Mapping[str, tuple[str, ...]]:
    """What its user knows of a task: each file that it leaves, and what is in it."""
    return {step.output: step.shown_by for step in task.steps if step.deed != "read"}


@asynccontextmanager
async def finishing(python: Path, module: str, *, prefix: str = "") -> AsyncIterator[Finishing]:
    """A contender that waits for tasks, in its own environment.

    Args:
        python: The interpreter of the environment.
        module: Its script, with the coroutines that do tasks.
        prefix: Of the names of the tools that it is given.
    """
    process = await asyncio.create_subprocess_exec(
        str(python),
        *("-m", "benchmarks.peers.checked", module),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # What it prints is no part of what this process has to say.
        stderr=asyncio.subprocess.DEVNULL,
    )
    at_work = Finishing(process, prefix)
    listening = asyncio.create_task(at_work.listen())
    try:
        yield at_work
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await listening
