"""Agents to test with."""

from collections.abc import Sequence
from importlib import import_module

from harness_actors.messages import Message
from harness_actors.ports import Agent, Model, Tool
from harness_actors.testing.scripted import Reply, ScriptedModel


def completes_at_once(messages: Sequence[Message]) -> Reply:
    """A script that says that it is done, whatever it was asked."""
    return Reply.call("work_complete", {"summary": "done"})


def an_agent(model: Model | None = None, tools: Sequence[Tool] = ()) -> Agent:
    """A `ChatAgent` that is done at once, or with another model whatever that says."""
    # By name: the room of agents stands above this one, and nothing else here needs it.
    chat_agent = import_module("harness_actors.agents").ChatAgent
    agent: Agent = chat_agent(model=model or ScriptedModel(completes_at_once), tools=tools)
    return agent
