"""OpenAI Agents SDK: an agent as a tool of another one, by `Agent.as_tool`."""

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

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
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=work.base_url, api_key=KEY)
    model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
    child = Agent(
        name="Notes", instructions=INSTRUCTIONS, model=model, tools=[function_tool(work.tool)]
    )
    agent = Agent(
        name="Delegates",
        instructions=DELEGATES,
        model=model,
        tools=[
            child.as_tool(tool_name=AGENT, tool_description=DESCRIPTION, max_turns=work.model_calls)
        ],
    )

    async def converse(task: str) -> None:
        await Runner.run(agent, task)

    await hold(converse, work)
