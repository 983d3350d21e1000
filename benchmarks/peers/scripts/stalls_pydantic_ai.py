"""Pydantic AI with `SummarizingCompaction` of its package `pydantic-ai-harness`.

At a share of the window, as its page has it; 20 messages are kept, its default.
"""

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_harness import SummarizingCompaction

from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK, page
from benchmarks.peers.conversations import KEY, Work

FULL = 0.9


async def contend(work: Work) -> None:
    provider = OpenAIProvider(base_url=work.base_url, api_key=KEY)
    agent = Agent(
        OpenAIChatModel(MODEL, provider=provider),
        instructions=INSTRUCTIONS,
        tools=[page],
        capabilities=[
            SummarizingCompaction(
                model=OpenAIChatModel(SUMMARIZER, provider=provider),
                max_fraction=FULL,
                context_window=work.window,
            )
        ],
    )
    # A summary counts as a request.
    await agent.run(TASK, usage_limits=UsageLimits(request_limit=2 * work.model_calls))
