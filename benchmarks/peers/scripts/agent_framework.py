"""Microsoft Agent Framework: an `Agent` with its Chat Completions client."""

import os

# Its switch for telemetry, on by default.
os.environ["ENABLE_INSTRUMENTATION"] = "false"

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    client = OpenAIChatCompletionClient(model=MODEL, base_url=work.base_url, api_key=KEY)
    client.function_invocation_configuration["max_iterations"] = work.model_calls
    agent = Agent(client=client, instructions=INSTRUCTIONS, tools=[work.tool])

    async def converse(task: str) -> None:
        await agent.run(task)

    await hold(converse, work)
