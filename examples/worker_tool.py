"""A tool that never ends, in a process that does: `python -m examples.worker_tool`.

A script stands in for the model, so no key is needed. The first call never ends, and is
killed with its process after ten seconds; the second one gets a new process and finds its primes.
"""

import asyncio

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.events import ToolReturned
from harness_actors.testing import Reply, ScriptedModel


@tool(worker=True, effect="read_only", timeout_s=10)
def count_primes(below: int) -> int:
    """Count the primes below a number; of a number below 0, for ever."""
    count, number = 0, 2
    while number != below:
        count += all(number % other for other in range(2, int(number**0.5) + 1))
        number += 1
    return count


MODEL = ScriptedModel(
    [
        Reply.call("count_primes", {"below": -1}),
        Reply.call("count_primes", {"below": 10_000}),
        Reply.text("There are 1229."),
    ]
)


async def main() -> None:
    agent = ChatAgent(model=MODEL, tools=[count_primes])
    async with AgentHarness(agent, runtime="local", completion="answer") as harness:
        result = await harness.run("How many primes are below 10,000?")
    for told in result.transcript:
        if isinstance(told.event, ToolReturned):
            print(told.event.text)
    print(result.output_text)


if __name__ == "__main__":
    asyncio.run(main())
