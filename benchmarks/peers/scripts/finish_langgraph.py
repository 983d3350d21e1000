"""LangGraph: LangChain's `create_agent`; its check is a hook that jumps back to the model.

The hook is `after_agent`, as its page on custom middleware has it.
"""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from benchmarks.peers.checked import INSTRUCTIONS, KEY, MODEL, CheckedTask
from benchmarks.peers.scripts.going_back import check_of


def _model(task: CheckedTask) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=task.base_url, api_key=KEY, timeout=task.timeout_s)


async def defaults(task: CheckedTask) -> None:
    agent = create_agent(_model(task), tools=task.tools, system_prompt=INSTRUCTIONS)
    await agent.ainvoke({"messages": [{"role": "user", "content": task.prompt}]})


async def checked(task: CheckedTask) -> None:
    agent = create_agent(
        _model(task), tools=task.tools, system_prompt=INSTRUCTIONS, middleware=[check_of(task)]
    )
    await agent.ainvoke({"messages": [{"role": "user", "content": task.prompt}]})
