"""OpenAI Agents SDK with a session in SQLite: run again on the same session, with nothing new."""

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work
from benchmarks.peers.mortal import note, was_killed


async def contend(work: Work) -> None:
    set_tracing_disabled(True)
    (task,) = work.tasks()
    client = AsyncOpenAI(base_url=work.base_url, api_key=KEY)
    agent = Agent(
        name="Notes",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        tools=[function_tool(note)],
    )
    session = SQLiteSession("1", work.folder / "session.db")
    await Runner.run(agent, [] if was_killed(work) else task, session=session)
