"""LangGraph with a checkpoint of each step: invoked again on the same thread, with no input."""

from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work
from benchmarks.peers.mortal import note, was_killed


async def contend(work: Work) -> None:
    from langchain.agents import create_agent

    await _converse(create_agent, work)


async def contend_deep(work: Work) -> None:
    from deepagents import create_deep_agent

    await _converse(create_deep_agent, work)


async def _converse(create: Any, work: Work) -> None:
    (task,) = work.tasks()
    model = ChatOpenAI(model=MODEL, base_url=work.base_url, api_key=KEY)
    async with AsyncSqliteSaver.from_conn_string(str(work.folder / "checkpoints.db")) as saver:
        agent = create(model=model, tools=[note], system_prompt=INSTRUCTIONS, checkpointer=saver)
        await agent.ainvoke(
            None if was_killed(work) else {"messages": [{"role": "user", "content": task}]},
            {"configurable": {"thread_id": "1"}},
            durability="sync",
        )
