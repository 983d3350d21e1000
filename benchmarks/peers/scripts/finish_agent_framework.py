"""Microsoft Agent Framework; its check is the predicate of an `AgentLoopMiddleware`.

As its page on looping has it: True and feedback to go on, False to stop, for at most so many runs.
A session keeps the conversation from one run to the next.
"""

import os

# Its switch for telemetry, on by default.
os.environ["ENABLE_INSTRUMENTATION"] = "false"

from typing import Any

from agent_framework import Agent, AgentLoopMiddleware
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from benchmarks.peers.checked import (
    ATTEMPTS,
    INSTRUCTIONS,
    KEY,
    MODEL,
    MOST_CALLS,
    CheckedTask,
    NotDoneError,
)


def _client(task: CheckedTask) -> OpenAIChatCompletionClient:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, timeout=task.timeout_s)
    return OpenAIChatCompletionClient(model=MODEL, async_client=client)


async def defaults(task: CheckedTask) -> None:
    agent = Agent(client=_client(task), instructions=INSTRUCTIONS, tools=task.tools)
    await agent.run(task.prompt)


async def checked(task: CheckedTask) -> None:
    def is_not_done(**_: Any) -> bool | tuple[bool, str]:
        gap = task.gap()
        return False if gap is None else (True, gap)

    client = _client(task)
    client.function_invocation_configuration["max_iterations"] = MOST_CALLS
    agent = Agent(
        client=client,
        instructions=INSTRUCTIONS,
        tools=task.tools,
        middleware=[
            AgentLoopMiddleware(
                is_not_done, max_iterations=ATTEMPTS, next_message=lambda *, feedback, **_: feedback
            )
        ],
    )
    await agent.run(task.prompt, session=agent.create_session())
    # It ends so, too, when the runs are spent.
    if gap := task.gap():
        raise NotDoneError(gap)
