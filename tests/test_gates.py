"""Gates as a user meets them: the examples of the page, whole runs, and text that is read along."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessResult, tool
from harness_actors.events import RunEvent, TextDelta, ToolProgress
from harness_actors.policies import Deny, Redact, SessionEnd, SessionStart
from harness_actors.ports import TOLD_CHARS, ToolContext
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools
from tests.pages import run_python, text_of

PAGE = text_of("docs/gates.md") + text_of("docs/control.md")
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\nIt prints `(.*?)`\.$", PAGE, re.DOTALL | re.MULTILINE
)
KEY = "sk-abcdefghijklmnop1234"
BEFORE_CUT = "x " * (TOLD_CHARS // 2 - 4)
"""Eight characters of what follows are told with it."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("code", "said"), EXAMPLES)
def test_an_example_prints_what_is_said_of_it(code: str, said: str, tmp_path: Path) -> None:
    ended = run_python(code, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{said}\n"


def test_every_example_says_what_it_prints() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 0


class Diary:
    """Writes down when sessions begin and end, in a file: it may be in any process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def session_start(self, event: SessionStart) -> None:
        self._write(f"start {event.run_id}")

    async def session_end(self, event: SessionEnd) -> None:
        self._write(f"end {event.run_id} {event.status} {event.output_text}")

    def _write(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{line}\n")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def until_written(path: Path, count: int) -> list[str]:
    async with asyncio.timeout(30):
        while True:
            lines = await asyncio.to_thread(_lines, path)
            if len(lines) >= count:
                return lines
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_hooks_of_a_harness_hear_when_a_run_begins_and_when_its_end_is_on_disk(
    runtime: Any, tmp_path: Path
) -> None:
    agent = ChatAgent(model=ScriptedModel([Reply.text("hello")]))
    diary = Diary(tmp_path / "diary")
    async with AgentHarness(
        agent,
        runtime=runtime,
        store=tmp_path / "runs.db",
        completion="answer",
        hooks=diary,
    ) as harness:
        result = await harness.run("hi")
        lines = await until_written(diary.path, 2)

    assert lines == [f"start {result.run_id}", f"end {result.run_id} done hello"]


async def test_a_secret_is_in_no_text_that_is_read_along_nor_in_the_journal(
    tmp_path: Path,
) -> None:
    script = [Reply.text(f"the key is {KEY} and that is it")]
    store = tmp_path / "runs.db"
    agent = ChatAgent(model=ScriptedModel(script), middleware=[Redact()])
    told, result = "", None
    async with AgentHarness(agent, runtime="local", store=store, completion="answer") as harness:
        async for item in harness.run_stream("what is the key?"):
            told += item.text if isinstance(item, TextDelta) else ""
            result = item if isinstance(item, HarnessResult) else result

    assert result is not None
    assert result.output_text == told == "the key is [redacted] and that is it"
    assert KEY not in await asyncio.to_thread(_told_in, store)


@tool
def tells(context: ToolContext) -> str:
    """Tell how it goes."""
    context.emit(f"logging in with {KEY}")
    context.emit(BEFORE_CUT + KEY)
    return "done"


async def test_a_secret_is_in_nothing_that_a_tool_tells_while_it_works(tmp_path: Path) -> None:
    script = [Reply.call("tells", {}), Reply.text("done")]
    agent = ChatAgent(model=ScriptedModel(script), tools=[tells], middleware=[Redact()])
    told = []
    async with AgentHarness(agent, runtime="local", completion="answer") as harness:
        async for item in harness.run_stream("log in"):
            if isinstance(item, RunEvent) and isinstance(item.event, ToolProgress):
                told.append(item.event.text)

    assert told[0] == "logging in with [redacted]"
    # Of what is cut nobody can tell whether it was one.
    assert BEFORE_CUT.startswith(told[1])
    assert len(told[1]) > len(BEFORE_CUT) - 20


def _told_in(store: Path) -> str:
    """All that a journal holds, but for the agent's code: the script of its model has the key."""
    with closing(sqlite3.connect(store)) as connection:
        lines = [line for line in connection.iterdump() if 'INTO "code"' not in line]
    # Blobs are written as digits.
    found = re.findall(r"X'([0-9A-F]+)'", "\n".join(lines))
    return "\n".join([*lines, *(bytes.fromhex(blob).decode("utf-8", "replace") for blob in found)])


async def test_a_tool_that_needs_more_than_the_agent_may_is_unknown_to_its_model(
    tmp_path: Path,
) -> None:
    script = [Reply.call("run_command", {"command": "id"}), Reply.text("I cannot.")]
    agent = ChatAgent(
        model=ScriptedModel(script), tools=coding_tools(), capabilities=["filesystem"]
    )
    async with AgentHarness(
        agent, runtime="local", store=tmp_path / "runs.db", completion="answer"
    ) as harness:
        result = await harness.run("who am I?")

    (returned,) = [e.event for e in result.transcript if e.event.type == "tool_returned"]
    assert "There is no tool 'run_command'. Tools: create_directory" in returned.text  # type: ignore[attr-defined]


async def test_an_agent_that_may_nothing_can_talk(tmp_path: Path) -> None:
    async def shy(event: Any) -> Deny | None:
        return None

    agent = ChatAgent(
        model=ScriptedModel([Reply.text("hello")]),
        tools=coding_tools(),
        capabilities=[],
        hooks={"pre_tool": shy},
    )
    async with AgentHarness(
        agent, runtime="local", store=tmp_path / "runs.db", completion="answer"
    ) as harness:
        assert (await harness.run("hi")).output_text == "hello"
