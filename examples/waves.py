"""Calls that only read run at once; whatever may write waits for them, and they for it.

    python examples/waves.py

A scripted model looks up three orders and their customers in one message, then refunds one of the
orders and looks again in the next. What a call does is declared where the tool is made: read-only
calls that stand side by side share a wave, unless they touch the same thing.
"""

import asyncio
import time
from collections.abc import Sequence

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.testing import Reply, ScriptedModel

LOOKUP_S = 0.2
BEGAN = time.monotonic()
REFUNDED: set[int] = set()


def say(what: str) -> None:
    print(f"{time.monotonic() - BEGAN:5.1f} s  {what}", flush=True)


@tool(effect="read_only")
async def order(number: int) -> str:
    """Look an order up."""
    say(f"order {number} is looked up")
    await asyncio.sleep(LOOKUP_S)
    return f"order {number}: {'refunded' if number in REFUNDED else 'paid'}"


@tool(effect="read_only", resource_keys=["crm:{customer}"])
async def customer(customer: str) -> str:
    """Look a customer up. Two calls about one of them do not run at once."""
    say(f"customer {customer} is looked up")
    await asyncio.sleep(LOOKUP_S)
    return f"{customer} pays in time"


@tool(effect="network")
async def refund(number: int) -> str:
    """Refund an order: alone, and once at most, whatever dies."""
    say(f"order {number} is refunded")
    REFUNDED.add(number)
    return f"order {number} is refunded"


SCRIPT = [
    Reply.calls(
        [
            *(("order", {"number": number}) for number in (17, 18, 19)),
            *(("customer", {"customer": name}) for name in ("Ada", "Bob")),
        ]
    ),
    Reply.calls(
        [
            ("order", {"number": 17}),  # answered from the log: nothing was written since
            ("refund", {"number": 17}),
            ("order", {"number": 17}),  # looked up again, for something was
        ]
    ),
    Reply.text("Order 17 is refunded."),
]


def results(conversation: Sequence[dict[str, str]]) -> list[str]:
    """What the model was told of its calls, in the order in which it made them."""
    return [message["content"] for message in conversation if message["role"] == "tool"]


async def main() -> None:
    agent = ChatAgent(model=ScriptedModel(SCRIPT), tools=[order, customer, refund])
    async with AgentHarness(agent, runtime="local", completion="answer") as harness:
        result = await harness.run("Refund what is late.")
        for line in results(await harness.conversation(result.run_id)):
            print(line)
    print(f"{result.status}, {result.usage.tool_calls} tool calls: {result.output_text}")


if __name__ == "__main__":
    asyncio.run(main())
