"""Pydantic AI; its check is an output validator that raises `ModelRetry`.

So its page on output has it. A tool or an output may be tried again once, and a run makes 50
requests, unless told.
"""

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.checked import (
    ATTEMPTS,
    INSTRUCTIONS,
    KEY,
    MODEL,
    MOST_CALLS,
    CheckedTask,
)


def _agent(task: CheckedTask, **settings: Any) -> Agent:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, timeout=task.timeout_s)
    return Agent(
        OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)),
        instructions=INSTRUCTIONS,
        tools=task.tools,
        **settings,
    )


async def defaults(task: CheckedTask) -> None:
    await _agent(task).run(task.prompt)


async def checked(task: CheckedTask) -> None:
    agent = _agent(task, retries=ATTEMPTS)

    @agent.output_validator
    async def is_done(output: str) -> str:
        if gap := task.gap():
            raise ModelRetry(gap)
        return output

    await agent.run(task.prompt, usage_limits=UsageLimits(request_limit=MOST_CALLS))
