"""Microsoft Agent Framework: a `SummarizationStrategy` in a budget of tokens, experimental.

The strategy by itself counts messages; `TokenBudgetComposedStrategy` has it at work when there are
too many tokens, as its page on compaction has it.
"""

import os

# Its switch for telemetry, on by default.
os.environ["ENABLE_INSTRUMENTATION"] = "false"

from agent_framework import (
    Agent,
    CharacterEstimatorTokenizer,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
)
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK, page
from benchmarks.peers.conversations import KEY, Work

FULL, KEPT = 0.9, 20


async def contend(work: Work) -> None:
    def client(name: str) -> OpenAIChatCompletionClient:
        return OpenAIChatCompletionClient(model=name, base_url=work.base_url, api_key=KEY)

    tokenizer = CharacterEstimatorTokenizer()
    reader = client(MODEL)
    reader.function_invocation_configuration["max_iterations"] = work.model_calls
    agent = Agent(
        client=reader,
        instructions=INSTRUCTIONS,
        tools=[page],
        tokenizer=tokenizer,
        compaction_strategy=TokenBudgetComposedStrategy(
            token_budget=int(FULL * work.window),
            tokenizer=tokenizer,
            strategies=[SummarizationStrategy(client=client(SUMMARIZER), target_count=KEPT)],
        ),
    )
    await agent.run(TASK)
