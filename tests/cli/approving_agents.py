"""Agents whose calls need approval, and the runs of theirs that wait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from harness_actors import ChatAgent, tool
from harness_actors.agents import Program
from harness_actors.events import InputAwaited
from harness_actors.messages import Message
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, over_messages
from harness_actors.tools import ask_user
from tests.replay.recorded_runs import FIRST_COMMAND, Session, opened_locally

Call = tuple[str, dict[str, Any]]

WHY = "it cannot be undone"
FILE = """
from harness_actors import tool

@tool(effect="network")
def refund(order: int, amount: int) -> str:
    return f"{amount} for {order}"

@tool(effect="network")
def send(text: str) -> str:
    return f"sent {len(text)}"
"""
RULES = f"{{rules: [{{decide: ask, tools: [refund, send], why: {WHY}}}]}}"


@tool(effect="network")
def refund(order: int, amount: int) -> str:
    """Refund a part of an order."""
    return f"{amount} for {order}"


def a_refund(order: int, amount: int = 5) -> Call:
    return "refund", {"order": order, "amount": amount}


def calls(*rounds: Sequence[Call], chats: bool = False) -> Callable[[Sequence[Message]], Reply]:
    """Makes these calls, message by message, and is done then: it says what it was told.

    Args:
        rounds: The calls.
        chats: It says so as in a conversation, which has no end to be called.
    """

    def script(messages: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken < len(rounds):
            return Reply.calls(list(rounds[spoken]))
        told = [message.text for message in messages if message.role == "tool"]
        said = "told: " + " | ".join(told)
        return Reply.text(said) if chats else Reply.call("work_complete", {"summary": said})

    return script


def calling_server(*rounds: Sequence[Call], chats: bool = False) -> LoopbackServer:
    """A provider whose model makes these calls."""
    return LoopbackServer(over_messages(calls(*rounds, chats=chats)))


def approving_agent(folder: Path, server: LoopbackServer, harness: str = "{}") -> str:
    """The file of an agent whose refunds and messages need approval."""
    (folder / "billing.py").write_text(FILE)
    path = folder / "approving.yaml"
    path.write_text(
        f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
        f"persona: {{approvals: {RULES}}}\n"
        f"environment: {{tools: [ask_user, 'billing:refund', 'billing:send']}}\n"
        f"harness: {harness}\n"
    )
    return str(path)


async def run_that_waits(store: Path, *rounds: Sequence[Call], run_id: str = "") -> str:
    """The id of a run in a journal that waits for approval, and that no process serves."""
    agent = ChatAgent(
        model=ScriptedModel(calls(*rounds)),
        tools=[refund, ask_user],
        approvals=Approvals(rules=[ApprovalRule(decide="ask", tools=["refund"], why=WHY)]),
    )
    name = run_id or f"run-{uuid4().hex[:8]}"
    session = Session(store, Program.of(agent), {}, "settle the complaint", name, name)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)
    return name
