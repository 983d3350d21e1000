"""Inspect: an evaluation of one sample, retried from its log.

Without its checkpoints in the middle of a sample, which fetch a program of their own.
"""

import os

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async, eval_retry_async, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.tool import Tool, tool

from benchmarks.peers import mortal
from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work
from benchmarks.peers.mortal import was_killed


@tool
def note() -> Tool:
    async def execute(path: str, line: str) -> str:
        """Write a line to the end of a file.

        Args:
            path: The file.
            line: What to write.
        """
        return await mortal.note(path, line)

    return execute


@task
def notes(said: str) -> Task:
    return Task(
        dataset=[Sample(input=said)],
        solver=react(prompt=INSTRUCTIONS, tools=[note()], submit=False),
    )


async def contend(work: Work) -> None:
    os.environ[f"{MODEL.upper()}_BASE_URL"] = work.base_url
    os.environ[f"{MODEL.upper()}_API_KEY"] = KEY
    logs = work.folder / "logs"
    (said,) = work.tasks()
    if was_killed(work):
        (cut,) = logs.glob("*.eval")
        (log,) = await eval_retry_async(str(cut), log_dir=str(logs), score=False)
    else:
        (log,) = await eval_async(
            notes(said), model=f"openai-api/{MODEL}/{MODEL}", log_dir=str(logs), score=False
        )
    if log.status != "success":
        raise RuntimeError(f"the evaluation ended {log.status}: {log.error}")
