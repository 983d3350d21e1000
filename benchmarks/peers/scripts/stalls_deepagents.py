"""Deep Agents: `create_deep_agent` as it comes, which summarizes by the profile of its model.

Its middleware with a summarizer of its own takes the place of the default one, and has the same
settings: they are computed of the profile.
"""

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import create_summarization_middleware
from langchain_openai import ChatOpenAI

from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK, page
from benchmarks.peers.conversations import KEY, Work


async def contend(work: Work) -> None:
    def model(name: str) -> ChatOpenAI:
        return ChatOpenAI(
            model=name,
            base_url=work.base_url,
            api_key=KEY,
            profile={"max_input_tokens": work.window},
        )

    agent = create_deep_agent(
        model=model(MODEL),
        tools=[page],
        system_prompt=INSTRUCTIONS,
        middleware=[create_summarization_middleware(model(SUMMARIZER), StateBackend())],
    )
    await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
