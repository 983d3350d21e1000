"""Real commands in processes of their own, and the model that they talk to."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_actors.messages import Message
from harness_actors.testing import Reply, over_messages

HARNESS = (sys.executable, "-c", "from harness_actors.cli import main; main()")
END_WITHIN_S = 60.0


@dataclass
class Command:
    """A command at work."""

    process: asyncio.subprocess.Process
    said: list[str] = field(default_factory=list)

    async def until_said(self, text: str) -> None:
        """Wait until its stdout has said something."""
        assert self.process.stdout is not None
        async with asyncio.timeout(END_WITHIN_S):
            while line := await self.process.stdout.readline():
                self.said.append(line.decode())
                if text in self.said[-1]:
                    return
        raise AssertionError(f"it ended without saying {text!r}: {self.said}")


async def started(
    arguments: Sequence[str], stderr: int = asyncio.subprocess.PIPE, /, **variables: str
) -> Command:
    """Start `harness` with these arguments."""
    environment = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
    process = await asyncio.create_subprocess_exec(
        *HARNESS,
        *arguments,
        env={**environment, **variables},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
    )
    return Command(process)


async def finished(command: Command) -> tuple[int, str, str]:
    """Wait for its end: its exit status, its stdout and its stderr."""
    async with asyncio.timeout(END_WITHIN_S):
        out, error = await command.process.communicate()
    status = command.process.returncode
    assert status is not None
    return status, "".join(command.said) + out.decode(), (error or b"").decode()


def _works(messages: Sequence[Message]) -> Reply:
    """Writes a file and says that it is done."""
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": "written"})
    return Reply.call("write_file", {"path": "b.txt", "content": "hello\n"})


works = over_messages(_works)


def _answers(messages: Sequence[Message]) -> Reply:
    return Reply.call("work_complete", {"summary": f"You said: {messages[-1].text}"})


answers = over_messages(_answers)
