"""Agents and tools that the tests of the runtimes share. Workers import them by value."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from harness_actors.agents import ChatAgent, Program
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool


@tool
async def note(path: str, seconds: float, context: ToolContext) -> str:
    """Write a line to a file, then take some time.

    Args:
        path: The file.
        seconds: How long it takes after the line is written.
    """
    line = f"{context.run_id} {context.call_id} {os.getpid()}\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)
    await asyncio.sleep(seconds)
    # Else a run that writes many lines would be one that repeats itself.
    return f"noted by {context.call_id}"


@tool(effect="read_only")
def look(topic: str) -> str:
    """Look something up.

    Args:
        topic: What to look up.
    """
    return f"{topic}: nothing new"


@tool
def crash() -> str:
    """End the process that runs this tool."""
    os.kill(os.getpid(), 9)
    return "not reached"


def replies(messages: Sequence[Message]) -> int:
    """How often the model has spoken since the newest task."""
    spoken = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        spoken += message.role == "assistant"
    return spoken


def note_then_complete(log: Path, *, rounds: int, seconds: float) -> Program:
    """An agent that calls the effectful `note` in each round, then completes."""
    path = str(log)

    def script(messages: Sequence[Message]) -> Reply:
        if replies(messages) < rounds:
            return Reply.call("note", {"path": path, "seconds": seconds})
        return Reply.call("work_complete", {"summary": f"after {rounds} notes"})

    return Program.of(ChatAgent(model=ScriptedModel(script), tools=[note]))


def look_then_complete(*, rounds: int) -> Program:
    """An agent that calls the read-only `look` in each round, then completes."""

    def script(messages: Sequence[Message]) -> Reply:
        if (spoken := replies(messages)) < rounds:
            return Reply.call("look", {"topic": f"{spoken:0200}"})
        return Reply.call("work_complete", {"summary": "seen"})

    return Program.of(ChatAgent(model=ScriptedModel(script), tools=[look]))


def lines(log: Path) -> list[str]:
    """The `run call` part of each line of a log."""
    if not log.exists():
        return []
    return [line.rsplit(" ", 1)[0] for line in log.read_text().splitlines()]


async def written(log: Path, count: int) -> None:
    """Return when a log has that many lines: its tools are running then."""
    while len(lines(log)) < count:  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.01)
