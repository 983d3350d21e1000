"""A database that is opened once and used by each call: `python -m examples.resource`.

A script stands in for the model, so no key is needed.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Annotated

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import resource


@resource
def shop() -> Iterator[sqlite3.Connection]:
    """The shop's database; opened by the first call, and closed when the harness is."""
    print("opened")
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE orders (number INTEGER, usd REAL)")
    connection.executemany("INSERT INTO orders VALUES (?, ?)", [(17, 120.0), (18, 80.5)])
    yield connection
    connection.close()
    print("closed")


@tool(effect="read_only")
def price(order: int, db: Annotated[sqlite3.Connection, shop]) -> float | None:
    """What an order costs, in dollars.

    Args:
        order: Its number.
    """
    row = db.execute("SELECT usd FROM orders WHERE number = ?", (order,)).fetchone()
    return None if row is None else float(row[0])


MODEL = ScriptedModel(
    [
        Reply.call("price", {"order": 17}),
        Reply.call("price", {"order": 18}),
        Reply.text("They cost 200.50 together."),
    ]
)


async def main() -> None:
    agent = ChatAgent(model=MODEL, tools=[price])
    async with AgentHarness(agent, runtime="local", completion="answer") as harness:
        result = await harness.run("What do the orders 17 and 18 cost together?")
    print(result.output_text)


if __name__ == "__main__":
    asyncio.run(main())
