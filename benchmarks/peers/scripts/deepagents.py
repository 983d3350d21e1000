"""Deep Agents: `create_deep_agent` as it comes, with its prompt, its tools and its middleware."""

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    agent = create_deep_agent(
        model=ChatOpenAI(model=MODEL, base_url=work.base_url, api_key=KEY),
        tools=[work.tool],
        system_prompt=INSTRUCTIONS,
    )

    async def converse(task: str) -> None:
        await agent.ainvoke({"messages": [{"role": "user", "content": task}]})

    await hold(converse, work)
