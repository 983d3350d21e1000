"""AutoGen AgentChat: an `AssistantAgent` per conversation, because agents keep theirs."""

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold


async def contend(work: Work) -> None:
    client = OpenAIChatCompletionClient(
        model=MODEL,
        base_url=work.base_url,
        api_key=KEY,
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": ModelFamily.UNKNOWN,
            "structured_output": False,
        },
    )

    async def converse(task: str) -> None:
        agent = AssistantAgent(
            name="notes",
            model_client=client,
            tools=[work.tool],
            system_message=INSTRUCTIONS,
            max_tool_iterations=work.model_calls,
        )
        await agent.run(task=task)

    await hold(converse, work)
    await client.close()
