"""Deep Agents: `create_deep_agent` as it comes; its check is the hook of LangChain's middleware.

Its own `RubricMiddleware` has a model judge a transcript. Its file tools have the names of ours and
are another thing: ours have a prefix.
"""

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI

from benchmarks.peers.checked import INSTRUCTIONS, KEY, MODEL, CheckedTask
from benchmarks.peers.scripts.going_back import check_of


def _model(task: CheckedTask) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=task.base_url, api_key=KEY, timeout=task.timeout_s)


async def defaults(task: CheckedTask) -> None:
    agent = create_deep_agent(model=_model(task), tools=task.tools, system_prompt=INSTRUCTIONS)
    await agent.ainvoke({"messages": [{"role": "user", "content": task.prompt}]})


async def checked(task: CheckedTask) -> None:
    agent = create_deep_agent(
        model=_model(task),
        tools=task.tools,
        system_prompt=INSTRUCTIONS,
        middleware=[check_of(task)],
    )
    await agent.ainvoke({"messages": [{"role": "user", "content": task.prompt}]})
