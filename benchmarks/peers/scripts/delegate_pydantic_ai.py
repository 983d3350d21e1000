"""Pydantic AI: *agent delegation*, a tool that runs another agent and passes its usage on."""

from pydantic_ai import Agent, RunContext, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.conversations import (
    AGENT,
    DELEGATES,
    DESCRIPTION,
    INSTRUCTIONS,
    KEY,
    MODEL,
    Work,
    hold,
)


async def contend(work: Work) -> None:
    provider = OpenAIProvider(base_url=work.base_url, api_key=KEY)
    model = OpenAIChatModel(MODEL, provider=provider)
    child = Agent(model, instructions=INSTRUCTIONS, tools=[work.tool])
    agent = Agent(model, instructions=DELEGATES)
    # All of a tree counts, and 50 requests would be the limit.
    limits = UsageLimits(request_limit=None)

    @agent.tool(name=AGENT, description=DESCRIPTION)
    async def delegate(context: RunContext[None], prompt: str) -> str:
        ran = await child.run(prompt, usage=context.usage, usage_limits=limits)
        return ran.output

    async def converse(task: str) -> None:
        await agent.run(task, usage_limits=limits)

    await hold(converse, work)
