"""A call that a person must approve, over the death of the process that asked.

    python examples/approvals.py

A scripted model looks an order up and wants to refund it. Refunds need approval, so the run waits,
and the process that began it ends: nothing is left of the run but its rows in a journal. Somebody
else approves of a smaller refund by `harness ctl run approve`. A third process takes the run up,
and the call is made, once, with the arguments that were approved.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness, ChatAgent, Message, tool
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.testing import Reply, ScriptedModel

COMMAND = [sys.executable, "-m", "harness_actors", "ctl", "run"]


@tool(effect="read_only")
def order(number: int) -> str:
    """Look an order up."""
    return f"order {number}: paid, 250 EUR"


@tool(effect="network")
def refund(number: int, amount: int) -> str:
    """Refund a part of an order: once at most, whatever dies."""
    print(f"order {number} is refunded: {amount} EUR")
    return f"{amount} EUR are refunded"


def script(messages: Sequence[Message]) -> Reply:
    """In place of a model: what it says next, by what it was told."""
    told = [message.text for message in messages if message.role == "tool"]
    match len(told):
        case 0:
            return Reply.call("order", {"number": 17})
        case 1:
            return Reply.call("refund", {"number": 17, "amount": 250})
        case _:
            return Reply.text(f"Settled: {told[-1]}.")


def a_harness(store: str) -> AgentHarness:
    money = ApprovalRule(decide="ask", tools=["refund"], why="it is our money")
    agent = ChatAgent(
        model=ScriptedModel(script), tools=[order, refund], approvals=Approvals(rules=[money])
    )
    return AgentHarness(agent, runtime="local", completion="answer", store=store)


async def begin(store: str) -> None:
    """Run until something is asked; the id of the run is the last line."""
    async with a_harness(store) as harness:
        result = await harness.run("Settle the complaint about order 17.")
    for asked in result.questions:
        print(f"{asked.id}: {asked.text} {asked.arguments}, {asked.why}")
    print(result.run_id)


async def go_on(store: str, run_id: str) -> None:
    async with a_harness(store) as harness:
        result = await harness.resume(run_id)
    print(f"{result.status}: {result.output_text}")


def in_a_process(*words: str) -> list[str]:
    """What a process of its own says, line by line."""
    ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.splitlines()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "complaints.db")
        ours = [sys.executable, __file__]
        *asked, run_id = in_a_process(*ours, "begin", store)
        print(*asked, sep="\n")
        changed = '{"number": 17, "amount": 20}'
        approved = in_a_process(
            *COMMAND, "approve", run_id, "--arguments", changed, "--store", store
        )
        print(approved[0].removeprefix(f"{run_id}: "))
        print(*in_a_process(*ours, "go on", store, run_id), sep="\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["begin", store]:
            asyncio.run(begin(store))
        case ["go on", store, run_id]:
            asyncio.run(go_on(store, run_id))
        case _:
            main()
