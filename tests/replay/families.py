"""Runs that begin others, on the local runtime: all of a tree, and their replays."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import ChatAgent, Program
from harness_actors.events import ChildrenStarted, Event, RunCompleted
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.replay import Replay, load_recording, replay
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply
from tests.actors.followers import until
from tests.replay.recorded_runs import TOOLS, CountingModel, Session

SENT_OUT = "You are sent out"
CHILD, LONG_WINDED = f"{SENT_OUT}.", f"{SENT_OUT} to talk."


class FamilyModel(CountingModel):
    """Answers a run as its replies say, and those that it begins as their tasks say.

    Args:
        replies: Those of the run at the top, in their order.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        def script(conversation: Sequence[Message]) -> Reply:
            said = sum(message.role == "assistant" for message in conversation)
            if conversation[0].text.startswith(SENT_OUT):
                task = next(m.text for m in conversation if m.role == "user")
                return child_reply(task, conversation, said)
            return replies[said]

        super().__init__(script)


class SilentChildren(FamilyModel):
    """The same, but for children that are told to be silent."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        if any(message.text == "be silent" for message in request.messages):
            await asyncio.Event().wait()
        return await super().complete(request)


def child_reply(task: str, conversation: Sequence[Message], said: int) -> Reply:
    """What a child does next, by the verb of its task."""
    verb, _, what = task.partition(" ")
    if verb == "talk":
        return Reply.text("word " * int(what.split()[min(said, 1)]))
    if said:
        results = [message.text for message in conversation if message.role == "tool"]
        return Reply.text(f"{task}: {', '.join(results)}")
    match verb:
        case "ask":
            first, _, rest = what.partition(" and ")
            calls = [("scout", {"prompt": one}) for one in (first, rest) if one]
            return Reply.calls(calls)
        case "hang":
            return Reply.call("hang")
        case "break":
            raise LookupError(what)
        case _:
            return Reply.call("write" if verb == "write" else "read", {"text": what})


SCOUT = SubAgentSpec(
    name="scout",
    description="Is sent out.",
    instructions=CHILD,
    sub_agents=[SubAgentSpec(name="scout", description="Is sent out.", instructions=CHILD)],
)
TALKER = SubAgentSpec(
    name="talker", description="Talks.", instructions=LONG_WINDED, max_words=5, reads_only=True
)


def family(replies: Sequence[Reply] | FamilyModel, **more: Any) -> Program:
    """An agent that delegates."""
    model = replies if isinstance(replies, FamilyModel) else SilentChildren(replies)
    agents = [SCOUT, TALKER]
    return Program.of(
        ChatAgent(model=model, tools=TOOLS, instructions="Be brief.", sub_agents=agents, **more)
    )


def scouts(*tasks: str) -> Reply:
    return Reply.calls([("scout", {"prompt": task}) for task in tasks])


async def grown(store: Path, replies: Sequence[Reply], **settings: Any) -> Session:
    """A tree of runs that is over."""
    session = Session(store, family(replies), settings)
    await session.to_its_end()
    return session


async def replayed_tree(store: Path) -> dict[str, Replay]:
    """Replays of all runs of a journal, by their ids."""
    journal = JournalReader(store)
    run_ids = [heading.run_id for heading in journal.headings()]
    return {run_id: await replay(load_recording(journal, run_id)) for run_id in run_ids}


async def check_tree(store: Path) -> dict[str, Replay]:
    """All runs of a journal come out the same, be they over or not."""
    found = await replayed_tree(store)
    for run_id, replayed in found.items():
        assert not replayed.differences, (run_id, replayed.differences)
        assert replayed.same, run_id
    return found


def ends(store: Path) -> dict[str, HarnessResult | None]:
    """How the runs of a journal have ended."""
    return {heading.run_id: heading.end for heading in JournalReader(store).headings()}


async def begun(session: Session, runtime: LocalRuntime) -> None:
    """Submit a run, and return when it has begun others."""
    await session.submit(runtime)
    await session.until(lambda event: isinstance(event, ChildrenStarted), runtime)


def is_over(event: Event) -> bool:
    return isinstance(event, RunCompleted)


async def ended(runtime: LocalRuntime, run_id: str) -> None:
    await until(runtime, run_id, is_over)


def silent_ones(store: Path) -> list[str]:
    """The runs of a journal that are told to be silent."""
    journal = JournalReader(store)
    runs = [journal.load_run(heading.run_id) for heading in journal.headings()]
    return [one.spec.run_id for one in runs if one and one.spec.task[0].text == "be silent"]
