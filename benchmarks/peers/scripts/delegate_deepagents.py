"""Deep Agents: a subagent as a dictionary; calls of its `task` tool in one message run at once."""

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

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
    agent = create_deep_agent(
        model=ChatOpenAI(model=MODEL, base_url=work.base_url, api_key=KEY),
        system_prompt=DELEGATES,
        subagents=[
            {
                "name": AGENT,
                "description": DESCRIPTION,
                "system_prompt": INSTRUCTIONS,
                "tools": [work.tool],
            }
        ],
    )

    async def converse(task: str) -> None:
        await agent.ainvoke({"messages": [{"role": "user", "content": task}]})

    await hold(converse, work)
