"""Inspect: a `react` agent as a tool of another one, by `as_tool`, whose calls may run at once."""

import os

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async
from inspect_ai.agent import as_tool, react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.tool import ToolDef

from benchmarks.peers.conversations import (
    AGENT,
    DELEGATES,
    DESCRIPTION,
    INSTRUCTIONS,
    KEY,
    MODEL,
    Work,
    window,
)
from benchmarks.peers.scripts.inspect_ai import note


async def contend(work: Work) -> None:
    await _evaluate(work, work.warm_up())
    with window("work"):
        await _evaluate(work, work.tasks())


async def _evaluate(work: Work, tasks: list[str]) -> None:
    child = react(
        name=AGENT,
        description=DESCRIPTION,
        prompt=INSTRUCTIONS,
        tools=[note(work.tool)],
        submit=False,
    )
    delegate = ToolDef(as_tool(child), parallel=True)
    (log,) = await eval_async(
        Task(
            dataset=[Sample(input=task) for task in tasks],
            solver=react(prompt=DELEGATES, tools=[delegate], submit=False),
        ),
        model=get_model(
            f"openai-api/{MODEL}/{MODEL}",
            base_url=work.base_url,
            api_key=KEY,
        ),
        max_samples=len(tasks),
        # A tree has many requests at once.
        max_connections=max(1, work.children) * len(tasks),
        log_dir=str(work.folder / "logs"),
        log_realtime=False,
        ctl_server=False,
        score=False,
    )
    if log.status != "success":
        raise RuntimeError(f"the evaluation ended {log.status}: {log.error}")
