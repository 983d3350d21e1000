"""LangGraph: LangChain's `create_agent`, which its documentation gives for agents on it.

Tracing is off unless `LANGSMITH_TRACING` is set. By default a graph keeps nothing; the second
entry has it write a checkpoint of each step to SQLite, as its page on durable execution says.
"""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    agent = create_agent(_model(work), tools=[work.tool], system_prompt=INSTRUCTIONS)

    async def converse(task: str) -> None:
        await agent.ainvoke({"messages": [{"role": "user", "content": task}]})

    await hold(converse, work)


async def contend_with_checkpoints(work: Work) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(work.folder / "checkpoints.db")) as saver:
        agent = create_agent(
            _model(work), tools=[work.tool], system_prompt=INSTRUCTIONS, checkpointer=saver
        )

        async def converse(task: str) -> None:
            await agent.ainvoke(
                {"messages": [{"role": "user", "content": task}]},
                {"configurable": {"thread_id": task}},
                # A step is on disk before the next begins.
                durability="sync",
            )

        await hold(converse, work)


def _model(work: Work) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=work.base_url, api_key=KEY)
