"""Pydantic AI: an `Agent` with `OpenAIChatModel`. It traces nothing unless told to."""

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    provider = OpenAIProvider(base_url=work.base_url, api_key=KEY)
    agent = Agent(
        OpenAIChatModel(MODEL, provider=provider), instructions=INSTRUCTIONS, tools=[work.tool]
    )
    limits = UsageLimits(request_limit=work.model_calls)

    async def converse(task: str) -> None:
        await agent.run(task, usage_limits=limits)

    await hold(converse, work)
