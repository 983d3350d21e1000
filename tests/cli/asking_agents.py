"""Agents that ask their user, and the runs of theirs that wait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness_actors.events import InputAwaited
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, over_messages
from harness_actors.tools import ask_user
from tests.replay.recorded_runs import FIRST_COMMAND, TOOLS, Session, opened_locally, program

Question = tuple[str, dict[str, Any]]


def question(text: str, **more: Any) -> Question:
    return "ask_user", {"question": text, **more}


COLOUR = question("Which colour?", options=["red", "blue"], why="to paint the door")
SIZE = question("Which size?")


def asks(*rounds: Sequence[Question]) -> Callable[[Sequence[Message]], Reply]:
    """Asks these questions, message by message, and is done then: it says what it was told."""

    def script(messages: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken < len(rounds):
            return Reply.calls(list(rounds[spoken]))
        told = [message.text for message in messages if message.role == "tool"]
        return Reply.call("work_complete", {"summary": "told: " + ", ".join(told)})

    return script


def asking_server(*rounds: Sequence[Question]) -> LoopbackServer:
    """A provider whose model asks."""
    return LoopbackServer(over_messages(asks(*rounds)))


def asking_agent(folder: Path, server: LoopbackServer, harness: str = "{}") -> str:
    """The file of an agent that may ask."""
    path = folder / "asking.yaml"
    path.write_text(
        f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
        f"environment: {{tools: [ask_user]}}\nharness: {harness}\n"
    )
    return str(path)


async def waiting_run(store: Path, run_id: str, *rounds: Sequence[Question]) -> None:
    """A run in a journal that waits, and that no process serves."""
    agent = program(ScriptedModel(asks(*rounds)), (*TOOLS, ask_user))
    session = Session(store, agent, {}, "paint the door", run_id, run_id)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)


def answers_of(store: Path, run_id: str) -> dict[str, str | None]:
    """What a run that waits was answered so far, by the ids of its questions."""
    (heading,) = (one for one in JournalReader(store).headings() if one.run_id == run_id)
    return {asked["id"]: asked["answer"] for asked in heading.questions}
