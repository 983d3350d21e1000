"""Microsoft Agent Framework: a workflow of the agent, run again from its last checkpoint."""

import os

os.environ["ENABLE_INSTRUMENTATION"] = "false"

from agent_framework import Agent, AgentExecutor, FileCheckpointStorage, WorkflowBuilder
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work
from benchmarks.peers.mortal import note, was_killed


async def contend(work: Work) -> None:
    client = OpenAIChatCompletionClient(model=MODEL, base_url=work.base_url, api_key=KEY)
    agent = Agent(client=client, instructions=INSTRUCTIONS, tools=[note], name="notes")
    storage = FileCheckpointStorage(str(work.folder / "checkpoints"))
    workflow = WorkflowBuilder(
        name="notes",
        start_executor=AgentExecutor(agent, id="notes"),
        checkpoint_storage=storage,
    ).build()
    (task,) = work.tasks()
    if was_killed(work):
        checkpoints = await storage.list_checkpoints(workflow_name="notes")
        last = max(checkpoints, key=lambda checkpoint: checkpoint.timestamp)
        await workflow.run(checkpoint_id=last.checkpoint_id)
    else:
        await workflow.run(task)
