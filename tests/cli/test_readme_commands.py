"""The commands of the README's section on runs in flight, run as they stand."""

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from harness_actors.cli.app import app
from harness_actors.events import ToolCalled
from harness_actors.testing import LoopbackServer, Reply
from tests.cli.approving_agents import a_refund, run_that_waits
from tests.cli.asking_agents import SIZE, waiting_run
from tests.replay.recorded_runs import FIRST_COMMAND, Session, done, opened_locally, program

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
SECTION = README.partition("<!-- run by tests/cli/test_readme_commands.py -->")[2]
COMMANDS = re.findall(r"^\$ harness (.*?)(?:\s+#.*)?$", SECTION.partition("\n```\n")[0], re.M)
RUN_ID = "3f2a77"


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 13


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A provider at the address that the environment names."""
    loop = asyncio.new_event_loop()
    server = LoopbackServer(lambda body: done("by another model"))
    loop.run_until_complete(server.__aenter__())
    thread = Thread(target=loop.run_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    folder = tmp_path / ("runs/one" if "--run-dir" in command else "")
    folder.mkdir(parents=True, exist_ok=True)
    words = shlex.split(command)
    if "approve" in words:
        asyncio.run(run_that_waits(folder / "runs.db", [a_refund(17)], run_id=RUN_ID))
    elif "answer" in words or "waiting" in words:
        asyncio.run(waiting_run(folder / "runs.db", RUN_ID, [SIZE]))
    else:
        asyncio.run(_a_run(folder / "runs.db", over="--follow" in command))
    if {"resume", "--resume", "--from"} & set(words):
        words += ["--runtime", "local"]

    ended = CliRunner().invoke(app, words, catch_exceptions=False)

    # Nobody serves it, so that nothing is summarized; it says so.
    expected = 1 if "compact" in words else 0
    assert (ended.exit_code, ended.stderr.count("error")) == (expected, 0)
    assert RUN_ID in ended.output or "another model" in ended.output or "in the end" in ended.output


async def _a_run(store: Path, *, over: bool) -> None:
    """A run that broke off in a call of its second turn, or went on from there."""
    replies = [Reply.text("first I think"), Reply.call("hang"), done("in the end")]
    session = Session(store, program(replies), {}, "a task", RUN_ID, RUN_ID)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, ToolCalled), runtime)
    if over:
        await session.taken_up()
