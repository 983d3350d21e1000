"""What a developer sees of tools of his own that print and fail."""

import asyncio
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.printed import Printed
from harness_actors.messages import Message
from harness_actors.stores.logs import RunLog
from harness_actors.testing import LoopbackServer, Reply, over_messages
from tests.cli.commands import finished, started
from tests.cli.test_chat_command import piped

TOOLS = '''
import threading
from harness_actors import tool

@tool
def fetch(order: int) -> str:
    """Fetch an order.

    Args:
        order: Its number.
    """
    print("fetching", order)
    thread = threading.Thread(target=print, args=("in a thread",))
    thread.start()
    thread.join()
    return look_up({}, order)

def look_up(orders, order):
    return orders[order]
'''
AGENT = """
model: {settings: {temperature: 0}}
environment: {tools: ["shop_tools:fetch"]}
"""


def _fetches(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": "tried"})
    return Reply.call("fetch", {"order": 17})


fetches = over_messages(_fetches)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    (tmp_path / "shop_tools.py").write_text(TOOLS)
    (tmp_path / "agent.yaml").write_text(AGENT)
    return tmp_path / "agent.yaml"


async def ran(agent: Path, *flags: str) -> tuple[int, str, str]:
    home = str(agent.parent / "home")
    async with LoopbackServer(fetches) as server:
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ("run", "fetch it", "--runtime", "local", "--agent", str(agent), *model, *flags)
        return await finished(await started(words, HARNESS_HOME=home))


async def test_prints_are_shown_in_their_place_on_request(agent: Path) -> None:
    status, out, error = await ran(agent, "-v")

    assert (status, out) == (0, "tried\n")
    lines = [line.strip() for line in error.splitlines()]
    called = lines.index('→ fetch {"order":17}')
    assert lines[called + 1 : called + 4] == [
        "[fetch] fetching 17",
        "[fetch] in a thread",
        "✗ KeyError: 17",
    ]


async def test_without_it_they_are_in_the_log_that_is_named(agent: Path) -> None:
    _, out, error = await ran(agent)

    assert out == "tried\n"
    assert "fetching" not in error
    (log,) = (agent.parent / "home" / "logs").iterdir()
    assert f"your code printed something: {log}; -v shows it at once" in error
    assert log.read_text().count("[fetch]") == 2


async def test_stdout_is_the_commands_whatever_tools_print(agent: Path) -> None:
    status, out, error = await ran(agent, "--json", "-v")

    assert status == 0
    assert json.loads(out)["output_text"] == "tried"
    assert "[fetch] fetching 17" in error


async def test_where_a_tool_failed_is_shown_on_request(agent: Path) -> None:
    _, _, brief = await ran(agent)
    _, out, error = await ran(agent, "--debug")

    assert "Traceback" not in brief
    assert out == "tried\n"
    assert "    Traceback (most recent call last):" in error
    assert 'shop_tools.py", line 16, in fetch' in error
    assert 'shop_tools.py", line 19, in look_up' in error
    assert "harness_actors/" not in error


async def test_a_chat_shows_calls_that_fail_and_where_and_what_was_printed(agent: Path) -> None:
    home = agent.parent / "home"
    async with LoopbackServer(over_messages(_fetches_once)) as server:
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ("chat", "--runtime", "local", "--agent", str(agent), *model)
        _, plain, brief = await piped(home, "fetch it\nagain\n", words)
        status, out, error = await piped(home, "fetch it\nagain\n", (*words, "-v", "--debug"))

    assert (status, out) == (0, "it failed\n" * 2)
    assert plain == out
    lines = [line.strip() for line in brief.splitlines()]
    assert lines.count("✗ KeyError: 17") == 2
    assert brief.count("your code printed something") == 1, "once is enough for a conversation"
    assert "Traceback" not in brief
    assert error.count("[fetch] fetching 17") == 2
    assert error.count('shop_tools.py", line 19, in look_up') == 2
    assert "printed something" not in error


def _fetches_once(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.text("it failed")
    return Reply.call("fetch", {"order": 17})


async def test_a_run_that_is_taken_up_or_forked_shows_the_same(agent: Path) -> None:
    home = str(agent.parent / "home")
    _, out, _ = await ran(agent, "--json")
    run_id = json.loads(out)["run_id"]
    async with LoopbackServer(fetches) as server:
        other = ("--model", "scripted", "--model-base-url", server.base_url)
        words = ("replay", run_id, "--from", "1", "--runtime", "local", "-v", "--debug", *other)
        status, _, error = await finished(await started(words, HARNESS_HOME=home))

    assert status == 0
    assert "[fetch] fetching 17" in error
    assert 'shop_tools.py", line 19, in look_up' in error


async def test_of_a_run_that_is_taken_up_only_what_it_prints_from_then_on_is_shown(
    tmp_path: Path,
) -> None:
    log = RunLog(tmp_path / "runs.db", "run")
    log.append("2026-01-31T23:59:59.999 [fetch] before\n")
    for shown, told in (True, "abc [fetch] behind\n"), (False, "your code printed something"):
        out = io.StringIO()
        printed = Printed(EventLines(out=out), shown=shown, whose="abc")
        printed.begin(tmp_path / "runs.db", "run", new=False)
        assert not printed.tell(), "nothing since"
        log.append("2026-01-31T23:59:59.999 [fetch] behind\n")
        await printed.end()
        assert printed.tell() is not shown
        assert told in out.getvalue()
        assert "before" not in out.getvalue()


async def test_where_calls_of_a_batch_failed_is_shown_on_request(agent: Path) -> None:
    (agent.parent / "tasks.jsonl").write_text('{"id": "t1", "task": "x"}\n')
    folder = agent.parent / "runs"
    async with LoopbackServer(fetches) as server:
        model = ("--model", "scripted", "--model-base-url", server.base_url)
        tasks = ("batch", str(agent.parent / "tasks.jsonl"), "--run-dir", str(folder))
        words = (*tasks, "--agent", str(agent), "--runtime", "local", *model)
        command = await started((*words, "--json", "--debug"), HARNESS_HOME=str(agent.parent))
        status, out, error = await finished(command)

    assert status == 0
    outcome = json.loads(out.splitlines()[0])
    assert "t1: a call of fetch failed" in error
    assert 'shop_tools.py", line 19, in look_up' in error
    assert (folder / "logs" / f"{outcome['run_id']}.log").read_text().count("[fetch]") == 2


async def test_where_a_run_of_a_batch_failed_is_on_record(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Model:\n"
        "    name = 'own'\n"
        "    async def complete(self, request):\n"
        "        return self.parse({})\n"
        "    def parse(self, answer):\n"
        "        return answer['text']\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, sys\n"
        "from own import Model\n"
        "from harness_actors import ChatAgent, run_batch\n"
        "async def main():\n"
        "    agent = ChatAgent(model=Model())\n"
        "    async for outcome in run_batch(['x'], agent, runtime='local', run_dir='runs'):\n"
        "        print(outcome.reason.traceback)\n"
        "asyncio.run(main())\n"
    )

    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    out = (await process.communicate())[0].decode()

    assert 'own.py", line 6, in parse' in out
    assert out.rstrip().endswith("KeyError: 'text'")
    line = json.loads((tmp_path / "runs" / "results.jsonl").read_text())
    assert "in parse" in line["reason"]["details"]["error"]["traceback"]

    run_dir = ("--run-dir", str(tmp_path / "runs"))
    shown = await finished(
        await started(("ctl", "run", "show", line["run_id"], *run_dir), HARNESS_HOME=str(tmp_path))
    )
    assert "failed here" in shown[1]
    assert 'own.py", line 6, in parse' in shown[1]
