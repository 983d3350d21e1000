"""Inspect: an evaluation of its `react` agent per task; its check is a scorer and more `attempts`.

So its page on the ReAct agent has it, with a message for a submission that is not correct. The
submit tool of the agent is called as the model calls it. Evaluations of a process come one after
the other. A request is sent again for as long as it takes.
"""

import asyncio
import os
import tempfile

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async
from inspect_ai.agent import AgentAttempts, AgentState, AgentSubmit, react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState
from inspect_ai.tool import Tool, ToolDef, tool

from benchmarks.peers.checked import (
    ATTEMPTS,
    INSTRUCTIONS,
    KEY,
    MODEL,
    CheckedTask,
    NotDoneError,
)

_TURN = asyncio.Lock()


@tool
def work_complete() -> Tool:
    async def execute(summary: str) -> str:
        """Say that the task is done.

        Args:
            summary: What was done.
        """
        return summary

    return execute


@scorer(metrics=[accuracy()])
def is_done(task: CheckedTask) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        gap = task.gap()
        return Score(value=INCORRECT if gap else CORRECT, explanation=gap)

    return score


async def defaults(task: CheckedTask) -> None:
    await _evaluate(task, attempts=1)


async def checked(task: CheckedTask) -> None:
    async def say_what_is_missing(state: AgentState, scores: list[Score]) -> str:
        return scores[0].explanation or ""

    attempts = AgentAttempts(ATTEMPTS, say_what_is_missing)
    found = await _evaluate(task, attempts=attempts, check=True)
    if found is None or found.value != CORRECT:
        raise NotDoneError("the scorer says so")


async def _evaluate(
    task: CheckedTask, *, attempts: int | AgentAttempts, check: bool = False
) -> Score | None:
    """The score of the task, where there is a check."""
    agent = react(
        prompt=INSTRUCTIONS,
        tools=[ToolDef(one) for one in task.tools],
        submit=AgentSubmit(name="work_complete", tool=work_complete()),
        attempts=attempts,
    )
    async with _TURN:
        with tempfile.TemporaryDirectory(prefix="inspect-logs-") as logs:
            (log,) = await eval_async(
                Task(
                    dataset=[Sample(input=task.prompt)],
                    solver=agent,
                    scorer=is_done(task) if check else None,
                ),
                model=get_model(
                    f"openai-api/{MODEL}/{MODEL}",
                    base_url=task.base_url,
                    api_key=KEY,
                    client_timeout=task.timeout_s,
                    memoize=False,
                ),
                log_dir=logs,
                log_realtime=False,
                ctl_server=False,
                score=check,
            )
            if log.status != "success":
                raise RuntimeError(f"the evaluation ended {log.status}: {log.error}")
            # Samples are read from the log, while that is there.
            (sample,) = log.samples
            return next(iter((sample.scores or {}).values()), None)
