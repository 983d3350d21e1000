"""OpenAI Agents SDK: an `Agent` and `Runner.run`, with its Chat Completions model."""

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    # Its advice for whoever has no key of the provider's platform.
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=work.base_url, api_key=KEY)
    agent = Agent(
        name="Notes",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        tools=[function_tool(work.tool)],
    )

    async def converse(task: str) -> None:
        await Runner.run(agent, task, max_turns=work.model_calls)

    await hold(converse, work)
