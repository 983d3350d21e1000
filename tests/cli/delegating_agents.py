"""Agents that delegate, and trees of their runs."""

from collections.abc import Sequence
from pathlib import Path

from harness_actors.agents import ChatAgent, Program
from harness_actors.events import RunCompleted, RunParked, ToolCalled
from harness_actors.messages import Message
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.followers import until
from tests.replay.recorded_runs import FIRST_COMMAND, Session, hang, opened_locally, read

SCOUT = SubAgentSpec(
    name="scout", description="Looks.", instructions="You look.", tools=["read", "hang"]
)


def _delegates(messages: Sequence[Message]) -> Reply:
    """Sends out two scouts, and ends with what they say; the second hangs at first."""
    if messages[0].text.startswith("You look"):
        task = next(message.text for message in messages if message.role == "user")
        if task == "right" and messages[-1].role == "user":
            return Reply.call("hang")
        return Reply.text(f"{task}: nothing")
    if messages[-1].role != "tool":
        return Reply.calls([("scout", {"prompt": "left"}), ("scout", {"prompt": "right"})])
    told = [message.text for message in messages if message.role == "tool"]
    return Reply.call("work_complete", {"summary": " | ".join(told)})


def a_boss() -> Program:
    """An agent with a scout to which it delegates."""
    model = ScriptedModel(_delegates)
    return Program.of(
        ChatAgent(model=model, tools=[read, hang], instructions="You lead.", sub_agents=[SCOUT])
    )


async def parked_tree(store: Path, run_id: str) -> None:
    """A tree in a journal that was put aside: one child is over, and another is not."""
    session = Session(store, a_boss(), {}, "look around", run_id, run_id)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until(runtime, f"{run_id}.1", lambda event: isinstance(event, RunCompleted))
        await until(runtime, f"{run_id}.2", lambda event: isinstance(event, ToolCalled))
        await runtime.stop([run_id], "park_now")
        await session.until(lambda event: isinstance(event, RunParked), runtime)
