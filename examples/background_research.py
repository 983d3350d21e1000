"""A researcher works in the background, is told something on the way, and outlives a SIGKILL.

    python -m examples.background_research

An editor sends out a researcher with a list of modules and goes on with its own work. While both
are at it, their process is killed. Another process takes up the tree from the journal: the
researcher goes on with the module at which it was, the editor learns what its readers want, and
tells the researcher, which then leaves out the rest. What it came to the editor is told once.

The models are scripts here; the processes, the journal and the kill are real.
"""

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness, ChatAgent, HarnessResult, Message, tool
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel

REPOSITORY = Path(__file__).resolve().parents[1]
EDITOR = "You are an editor."
MODULES = (
    "batch/engine.py",
    "coordination/children.py",
    "models/openai.py",
    "cli/run.py",
    "coordination/beside.py",
    "stores/schema.py",
)
WANTED = "Our readers want to know of coordination alone."
READ_BEFORE = 2
"""Modules that the researcher has read when the process is killed."""


@tool(effect="read_only")
async def read_heading(module: str, folder: str) -> str:
    """Read what a module is about.

    Args:
        module: Its path below the package.
        folder: Where it is noted that it was read.
    """
    await asyncio.sleep(0.2)
    with (Path(folder) / "read").open("a") as file:
        file.write(f"{module}\n")
    text = (REPOSITORY / "harness_actors" / module).read_text()
    return text.split('"""')[1].splitlines()[0]


@tool(effect="read_only", volatile=True)
async def ask_readers(folder: str) -> str:
    """Ask the readers what they want, which may take long."""
    while not (Path(folder) / "answered").exists():  # noqa: ASYNC110 - by another process
        await asyncio.sleep(0.05)
    return WANTED


def edit(folder: str, messages: Sequence[Message]) -> Reply:
    """The editor: sends out a researcher, asks its readers, tells it, and waits for it."""
    steps = [
        Reply.call("research", {"prompt": "\n".join(MODULES)}),
        Reply.call("ask_readers", {"folder": folder}),
        Reply.call("agent_send", {"agent": "research-1", "message": WANTED}),
        Reply.call("agent_wait", {}),
    ]
    done = sum(message.role == "assistant" for message in messages)
    if done < len(steps):
        return steps[done]
    letter = next(m.text for m in reversed(messages) if m.role == "user")
    return Reply.call("work_complete", {"summary": letter.partition("]\n")[2]})


def research(folder: str, messages: Sequence[Message]) -> Reply:
    """The researcher: a module a round, and only those that are wanted."""
    users = [message.text for message in messages if message.role == "user"]
    read = [message.text for message in messages if message.role == "tool"]
    asked = [call for message in messages for call in message.tool_calls]
    known = [re.findall(r'"module": ?"([^"]+)"', call.arguments)[0] for call in asked]
    wanted = [one for one in users[0].split() if one not in known]
    if any(WANTED in text for text in users):
        wanted = [one for one in wanted if one.startswith("coordination/")]
    if wanted:
        return Reply.call("read_heading", {"module": wanted[0], "folder": folder})
    return Reply.text("\n".join(f"{one}: {text}" for one, text in zip(known, read, strict=True)))


class Script:
    """What both models say, with the folder that their tools share."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __call__(self, messages: Sequence[Message]) -> Reply:
        says = edit if messages[0].text.startswith(EDITOR) else research
        return says(self.folder, messages)


def harness(folder: Path) -> AgentHarness:
    """The editor, with the journal in a folder."""
    researcher = SubAgentSpec(
        name="research",
        description="Have somebody find out what modules are about, a path in each line.",
        instructions="You are a researcher.",
        background=True,
    )
    editor = ChatAgent(
        model=ScriptedModel(Script(folder)),
        instructions=EDITOR,
        tools=[read_heading, ask_readers],
        sub_agents=[researcher],
    )
    return AgentHarness(editor, store=folder / "runs.db", runtime="local")


async def begin(folder: Path) -> None:
    """Begin, and be killed."""
    async with harness(folder) as editor:
        await editor.run("Write about our modules.")


async def go_on(folder: Path) -> HarnessResult:
    """Take up what was begun in a process that is gone."""
    run_id = next(
        one.run_id for one in JournalReader(folder / "runs.db").headings() if not one.root
    )
    (folder / "answered").touch()
    async with harness(folder) as editor:
        return await editor.resume(run_id)


def killed(folder: Path) -> int:
    """Begin in a process of its own, and kill it in the middle; how many modules were read."""
    command = [sys.executable, "-m", "examples.background_research", "--begin", str(folder)]
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        deadline = time.monotonic() + 60
        while (read := _read(folder)) < READ_BEFORE:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"it ended with {process.poll()} after {read} modules")
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    return read


def _read(folder: Path) -> int:
    noted = folder / "read"
    return len(noted.read_text().split()) if noted.exists() else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="A researcher in the background.")
    parser.add_argument("--begin", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.begin is not None:
        asyncio.run(begin(given.begin))
        return 0
    with tempfile.TemporaryDirectory(prefix="background-research-") as name:
        folder = Path(name)
        print(f"killed after {killed(folder)} of {len(MODULES)} modules", flush=True)
        result = asyncio.run(go_on(folder))
        print(f"{result.status}({result.reason.kind}), {result.children} researcher:")
        print(result.output_text)
        print(f"{_read(folder)} modules were read, one of them twice at most")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
