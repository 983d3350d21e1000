"""An agent for the scripts here."""

from collections.abc import Sequence

from harness_actors.agents import ChatAgent
from harness_actors.messages import Message
from harness_actors.testing import Reply, ScriptedModel


def _repeat(messages: Sequence[Message]) -> Reply:
    return Reply.call("work_complete", {"summary": f"done: {messages[-1].text}"})


def repeats() -> ChatAgent:
    """It says its task once more, and is done."""
    return ChatAgent(model=ScriptedModel(_repeat))
