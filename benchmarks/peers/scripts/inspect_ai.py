"""Inspect: an evaluation of a sample per conversation by its `react` agent, all at once.

Calls of a message run at once where their tool says that it may. It writes its log, which is what
it is for; only the copy for watching an evaluation live, the control channel and the display are
off.
"""

import os
from collections.abc import Awaitable, Callable

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.tool import Tool, tool

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, window


@tool(parallel=True)
def note(take: Callable[..., Awaitable[str]]) -> Tool:
    async def execute(path: str, line: str) -> str:
        """Write a line to the end of a file.

        Args:
            path: The file.
            line: What to write.
        """
        return await take(path, line)

    return execute


async def contend(work: Work) -> None:
    await _evaluate(work, work.warm_up())
    with window("work"):
        await _evaluate(work, work.tasks())


async def _evaluate(work: Work, tasks: list[str]) -> None:
    (log,) = await eval_async(
        Task(
            dataset=[Sample(input=task) for task in tasks],
            # Without its `submit` tool an answer ends a conversation, as everywhere else.
            solver=react(prompt=INSTRUCTIONS, tools=[note(work.tool)], submit=False),
        ),
        model=get_model(
            f"openai-api/{MODEL}/{MODEL}",
            base_url=work.base_url,
            api_key=KEY,
        ),
        max_samples=len(tasks),
        max_connections=len(tasks),
        log_dir=str(work.folder / "logs"),
        log_realtime=False,
        ctl_server=False,
        score=False,
    )
    if log.status != "success":
        raise RuntimeError(f"the evaluation ended {log.status}: {log.error}")
