"""LangChain: `create_agent` with its `SummarizationMiddleware`, before a model call.

It summarizes at a share of the window, as its page has it, and keeps the last 20 messages, its
default. By default it shows the summarizer 4,000 tokens that begin with words of the user, of which
there are none after many calls: then it asks for no summary at all. So the limit is left out.
"""

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_openai import ChatOpenAI

from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK, page
from benchmarks.peers.conversations import KEY, Work

FULL = 0.85


async def contend(work: Work) -> None:
    def model(name: str) -> ChatOpenAI:
        return ChatOpenAI(
            model=name,
            base_url=work.base_url,
            api_key=KEY,
            profile={"max_input_tokens": work.window},
        )

    agent = create_agent(
        model(MODEL),
        tools=[page],
        system_prompt=INSTRUCTIONS,
        middleware=[
            SummarizationMiddleware(
                model=model(SUMMARIZER), trigger=("fraction", FULL), trim_tokens_to_summarize=None
            )
        ],
    )
    await agent.ainvoke(
        {"messages": [{"role": "user", "content": TASK}]},
        {"recursion_limit": 10 * work.model_calls},
    )
