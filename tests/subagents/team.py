"""An agent and those to which it delegates, with what their models say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_actors import AgentHarness, ChatAgent, HarnessResult
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec, explore, run_task
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool

TOP = "You are at the top."
DONE = Reply.call("work_complete", {"summary": "done"})

Says = Callable[[Sequence[Message]], Reply]


@tool(effect="read_only")
async def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


@tool
async def write(what: str) -> str:
    """Write something."""
    return f"wrote {what}"


def asked(conversation: Sequence[Message]) -> str:
    """What an agent was told to do."""
    return next(message.text for message in conversation if message.role == "user")


def results(conversation: Sequence[Message]) -> list[str]:
    return [message.text for message in conversation if message.role == "tool"]


def looks(conversation: Sequence[Message]) -> Reply:
    """Looks at what it was asked about, and says what it saw."""
    seen = results(conversation)
    if not seen:
        return Reply.call("look", {"what": asked(conversation)})
    return Reply.text(f"found: {seen[-1]}")


def in_order(*replies: Reply) -> Says:
    """The first to a conversation without an answer, and so on; the last stays."""

    def reply(conversation: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in conversation)
        return replies[min(spoken, len(replies) - 1)]

    return reply


def delegating(*calls: tuple[str, Mapping[str, Any]]) -> Says:
    """Makes calls in one message, and is done."""
    return in_order(Reply.calls(list(calls)), DONE)


def exploring(*questions: str) -> Says:
    return delegating(*(("explore", {"prompt": one}) for one in questions))


@dataclass
class Team:
    """An agent with others.

    Attributes:
        top: What its model says.
        below: What those of the others say, by a part of their instructions.
        specs: Who they are.
        given: What else the agent has.
    """

    top: Says
    below: Mapping[str, Says] = field(default_factory=lambda: {"You find things out": looks})
    specs: Sequence[SubAgentSpec] = field(default_factory=lambda: (explore(), run_task()))
    given: Mapping[str, Any] = field(default_factory=dict)

    def says(self, conversation: Sequence[Message]) -> Reply:
        system = conversation[0].text if conversation[0].role == "system" else ""
        if system.startswith(TOP):
            return self.top(conversation)
        says = next(one for part, one in self.below.items() if part in system)
        return says(conversation)

    def agent(self) -> ChatAgent:
        parts: dict[str, Any] = {"tools": [look, write], **self.given}
        return ChatAgent(
            model=ScriptedModel(self.says), instructions=TOP, sub_agents=self.specs, **parts
        )

    def harness(self, store: Path, **settings: Any) -> AgentHarness:
        given: dict[str, Any] = {"runtime": "local", **settings}
        return AgentHarness(self.agent(), store=store, **given)


async def ran(team: Team, folder: Path, **settings: Any) -> tuple[HarnessResult, JournalReader]:
    """A run of it, and the journal in which it is."""
    store = folder / "runs.db"
    async with team.harness(store, **settings) as harness:
        result = await harness.run("Go.")
    return result, JournalReader(store)


def told(journal: JournalReader, run_id: str) -> list[str]:
    """The results of the calls of a run, in the order of its log."""
    stored = journal.load_run(run_id)
    assert stored is not None
    return [message.text for message in stored.state.log if message.role == "tool"]
