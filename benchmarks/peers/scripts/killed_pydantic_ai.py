"""Pydantic AI with DBOS on SQLite: a workflow of the agent's run, with the tool as a step of it.

DBOS takes up workflows that were cut off when it is launched again.
"""

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work
from benchmarks.peers.mortal import note, was_killed

WORKFLOW = "1"


async def contend(work: Work) -> None:
    DBOS(
        config={
            "name": "notes",
            "system_database_url": f"sqlite:///{work.folder / 'dbos.db'}",
            "run_admin_server": False,
            # By default a hash of the sources: another one would not be resumed.
            "application_version": "1",
        }
    )
    provider = OpenAIProvider(base_url=work.base_url, api_key=KEY)
    agent = Agent(
        OpenAIChatModel(MODEL, provider=provider),
        name="notes",
        instructions=INSTRUCTIONS,
        tools=[DBOS.step()(note)],
        capabilities=[DBOSDurability()],
    )

    @DBOS.workflow()
    async def converse(task: str) -> str:
        return (await agent.run(task)).output

    DBOS.launch()
    (task,) = work.tasks()
    if was_killed(work):
        handle = await DBOS.retrieve_workflow_async(WORKFLOW)
        await handle.get_result()
    else:
        with SetWorkflowID(WORKFLOW):
            await converse(task)
    DBOS.destroy()
