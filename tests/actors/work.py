"""A folder with an agent whose tool writes lines, and the commands that run its tasks."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness_actors.messages import Message
from harness_actors.records import ProcessMark, RunHeading
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply
from tests.actors.joined import Drivers, ended

AGENT = """
model: {id: scripted}
environment: {tools: ["work:mark"]}
"""
HELPER = """
def said(text):
    return f"{text}, says VERSION"
"""
TOOL = """
import os
from harness_actors.tools import tool
import helping

@tool
def mark(path: str, text: str) -> str:
    \"\"\"Write a line.\"\"\"
    with open(path, "a") as file:
        file.write(helping.said(f"{text} in VERSION") + "\\n")
    return "marked"
"""


def marks_then_completes(messages: Sequence[Message]) -> Reply:
    """Calls the tool as often as the task says, then is done."""
    task = next(message.text for message in messages if message.role == "user")
    path, text, rounds = task.split()
    spoken = sum(message.role == "assistant" for message in messages)
    if spoken < int(rounds):
        return Reply.call("mark", {"path": path, "text": f"{text}:{spoken}"})
    return Reply.call("work_complete", {"summary": text})


class Work:
    """A folder with an agent, its tool and its tasks."""

    def __init__(self, folder: Path, server: LoopbackServer) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.run_dir = folder / "out"
        self.store = self.run_dir / "runs.db"
        self._model = ("--model-base-url", server.base_url)
        folder.mkdir(exist_ok=True)
        (folder / "agent.yaml").write_text(AGENT)
        self.edit("first")

    def edit(self, version: str) -> None:
        """Change the tool's module, and the one that it imports."""
        for name, text in (("work.py", TOOL), ("helping.py", HELPER)):
            (self.folder / name).write_text(text.replace("VERSION", version))
        shutil.rmtree(self.folder / "__pycache__", ignore_errors=True)

    def task(self, text: str, rounds: int = 1) -> str:
        return f"{self.log} {text} {rounds}"

    def run(self, text: str) -> list[str]:
        return ["run", self.task(text), "--agent", str(self.folder / "agent.yaml"), *self._model]

    def batch(self, *texts: str, rounds: int = 1, run_dir: Path | None = None) -> list[str]:
        tasks = self.folder / "tasks.jsonl"
        lines = [{"id": text, "task": self.task(text, rounds)} for text in texts]
        tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
        agent = ("--agent", str(self.folder / "agent.yaml"))
        return [
            "batch",
            str(tasks),
            "--run-dir",
            str(run_dir or self.run_dir),
            *agent,
            *self._model,
        ]

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def results(self) -> dict[str, str]:
        path = self.run_dir / "results.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return {line["id"]: line["status"] for line in lines}

    def headings(self) -> list[RunHeading]:
        return JournalReader(self.store).headings()

    def coordinators(self) -> list[ProcessMark]:
        """All that ever served its runs."""
        marks = JournalReader(self.store).load_processes()
        return [mark for mark in marks if mark.role == "coordinator"]


async def kill_in_flight(
    drivers: Drivers, command: Sequence[str], server: LoopbackServer, calls: int
) -> None:
    """Begin a command, and kill it when its model was called so often; nothing is answered."""
    server.hold()
    killed = await drivers.start(*command)
    await server.until_open(calls)
    killed.kill()
    await ended(killed)
