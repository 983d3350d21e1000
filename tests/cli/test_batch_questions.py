"""`harness batch` with an agent that asks its user, as a process of its own."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors import open_runtime
from harness_actors.messages import Message
from harness_actors.testing import LoopbackServer, Reply, over_messages
from tests.cli.commands import Command, finished, started

ANSWERING = """
import asyncio, sys
from pathlib import Path
from harness_actors.actors.driver.attach import attach

async def answer(store, run_id, text):
    cell = await attach(Path(store))
    await cell.answer(run_id, {"q1": text})

asyncio.run(answer(*sys.argv[1:]))
"""
"""Another command, which reaches the cell of a batch that is at work."""


def _asks(messages: Sequence[Message]) -> Reply:
    """Asks for a color where the task begins so, and says what it was answered."""
    task = next(message.text for message in messages if message.role == "user")
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": messages[-1].text})
    if task.startswith("ask"):
        return Reply.call("ask_user", {"question": f"Which color, {task}?"})
    if task.startswith("wait"):
        return Reply.call(
            "run_command", {"command": "touch begun; until test -e go; do sleep 0.1; done"}
        )
    return Reply.call("work_complete", {"summary": "nothing to ask"})


asks = over_messages(_asks)


class Asked:
    """The server of `asks`, and how often it was asked to begin each task."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Reply | Mapping[str, Any]:
        if body["messages"][-1]["role"] == "user":
            self.begun[body["messages"][-1]["content"]] += 1
        return asks(body)


def command(folder: Path, server: LoopbackServer, *flags: str, ray: bool = False) -> list[str]:
    (folder / "asks.yaml").write_text(
        f"model: {{id: m, base_url: '{server.base_url}'}}\n"
        "environment: {tools: [ask_user, run_command]}\n"
    )
    return [
        *("batch", str(folder / "tasks.jsonl"), "--run-dir", str(folder / "run")),
        *("--runtime", "ray" if ray else "local", "--agent", str(folder / "asks.yaml")),
        *flags,
    ]


def tasks_file(folder: Path, **tasks: str) -> None:
    lines = (json.dumps({"id": name, "task": task}) for name, task in tasks.items())
    (folder / "tasks.jsonl").write_text("".join(f"{line}\n" for line in lines))


def lines_of(folder: Path) -> list[str]:
    path = folder / "run" / "results.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(json.loads(line)["id"] for line in lines)


def summary_of(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "run" / "summary.json").read_text())
    return summary


async def until_waiting(running: Command, *names: str) -> dict[str, str]:
    """Read outcomes of a command until these tasks wait: their runs."""
    runs: dict[str, str] = {}
    while not runs.keys() >= set(names):
        await running.until_said('"awaiting_input"')
        told = json.loads(running.said[-1])
        runs[told["id"]] = told["run_id"]
    return runs


async def answer(folder: Path, runs: dict[str, str]) -> None:
    """Answer runs of a batch that nobody works on."""
    runtime = await open_runtime("local", store=folder / "run" / "runs.db", command="answers")
    for run_id in runs.values():
        await runtime.answer(run_id, {"q1": "blue"})
    await runtime.close()


async def test_a_batch_ends_when_only_answers_are_missing_and_says_whose(tmp_path: Path) -> None:
    tasks_file(tmp_path, t1="ask one", t2="say nothing", t3="ask three")
    async with LoopbackServer(asks) as server:
        status, out, _ = await finished(await started(command(tmp_path, server, "-n", "1")))

    first, second = summary_of(tmp_path)["waiting"]["runs"]
    assert status == 1
    assert "1/3 done (1 ok, 0 failed), 0 running, 2 waiting, " in out
    assert "2 runs wait for answers; answered, the same command goes on" in out
    assert f"t1, run {first['run_id']}: Which color, ask one?" in out
    assert f"t3, run {second['run_id']}: Which color, ask three?" in out
    assert f"harness ctl run answer RUN_ID … --run-dir {tmp_path}" in out
    assert lines_of(tmp_path) == ["t2"]


async def test_with_json_a_waiting_run_is_a_line_with_its_questions(tmp_path: Path) -> None:
    tasks_file(tmp_path, t1="ask one")
    async with LoopbackServer(asks) as server:
        status, out, error = await finished(await started(command(tmp_path, server, "--json")))

    told, last = (json.loads(line) for line in out.splitlines())
    assert (status, told["status"], told["reason"]["kind"]) == (1, "awaiting_input", "question")
    (question,) = told["reason"]["details"]["questions"]
    assert (question["id"], question["text"]) == ("q1", "Which color, ask one?")
    assert last["summary"]["ending"] == "waiting"
    assert last["summary"]["waiting"]["runs"][0]["run_id"] == told["run_id"]
    assert last["results"] is None
    assert "Traceback" not in error


async def test_a_command_that_is_killed_while_runs_wait_asks_nothing_twice(tmp_path: Path) -> None:
    tasks_file(tmp_path, t1="ask one", t2="wait", t3="ask three", t4="say nothing")
    asked = Asked()
    async with LoopbackServer(asked) as server:
        first = await started(command(tmp_path, server, "--json", "-n", "2"))
        runs = await until_waiting(first, "t1", "t3")
        first.process.kill()
        await finished(first)
        await answer(tmp_path, {"t3": runs["t3"]})

        again = await started(command(tmp_path, server, "--json", "-n", "2"))
        status, out, _ = await finished(again)
        assert status == 1
        ended = {line["id"]: line for line in map(json.loads, out.splitlines()) if "id" in line}
        assert ended["t1"]["run_id"] == runs["t1"]
        assert (ended["t1"]["status"], ended["t3"]["status"]) == ("awaiting_input", "done")
        assert ended["t3"]["output_text"] == "blue"
        assert ended["t2"]["status"] == "done"

        await answer(tmp_path, {"t1": runs["t1"]})
        status, _, _ = await finished(await started(command(tmp_path, server)))

    assert status == 0
    assert lines_of(tmp_path) == ["t1", "t2", "t3", "t4"]
    assert (asked.begun["ask one"], asked.begun["ask three"]) == (1, 1)


async def test_ctrl_c_while_runs_wait_leaves_them_to_the_next_command(tmp_path: Path) -> None:
    tasks_file(tmp_path, t1="ask one", t2="wait")
    asked = Asked()
    async with LoopbackServer(asked) as server:
        first = await started(command(tmp_path, server, "--json"))
        runs = await until_waiting(first, "t1")
        await server.until_asked(2)
        for signalled in ("stopping after", "leaving"):
            first.process.send_signal(signal.SIGINT)
            await until_said_beside(first, signalled)
        status, _, _ = await finished(first)
        assert status == 130
        assert summary_of(tmp_path)["waiting"]["runs"][0]["run_id"] == runs["t1"]

        await answer(tmp_path, runs)
        status, _, _ = await finished(await started(command(tmp_path, server)))

    assert status == 0
    assert asked.begun["ask one"] == 1


async def until_said_beside(running: Command, text: str) -> None:
    """Wait until its stderr has said something."""
    assert running.process.stderr is not None
    async with asyncio.timeout(60):
        while line := await running.process.stderr.readline():
            if text in line.decode():
                return
    raise AssertionError(f"it ended without saying {text!r}")


@pytest.mark.parametrize(("word", "status"), [("deny", "done"), ("fail", "failed")])
async def test_a_flag_says_what_becomes_of_questions_in_unattended_work(
    word: str, status: str, tmp_path: Path
) -> None:
    tasks_file(tmp_path, t1="ask one")
    async with LoopbackServer(asks) as server:
        flags = ("--on-question", word, "--json")
        running = await started(command(tmp_path, server, *flags))
        exit_status, out, _ = await finished(running)

    told = json.loads(out.splitlines()[0])
    assert (told["status"], exit_status) == (status, 0 if status == "done" else 1)
    assert lines_of(tmp_path) == ["t1"]


async def test_a_word_that_is_none_is_refused(tmp_path: Path) -> None:
    tasks_file(tmp_path, t1="ask one")
    refused = command(tmp_path, LoopbackServer(port=9), "--on-question", "maybe")
    status, _, error = await finished(await started(refused))

    assert status == 2
    assert "--on-question" in error


@pytest.mark.ray
async def test_an_answer_of_another_command_is_taken_up_while_the_batch_goes_on(
    tmp_path: Path,
) -> None:
    tasks_file(tmp_path, t1="ask one", t2="wait")
    async with LoopbackServer(asks) as server:
        running = await started(command(tmp_path, server, "--json", ray=True))
        runs = await until_waiting(running, "t1")
        store = str(tmp_path / "run" / "runs.db")
        answering = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ANSWERING, store, runs["t1"], "green", env=os.environ
        )
        assert await answering.wait() == 0
        await running.until_said('"output_text":"green"')
        for folder in (tmp_path / "run" / "workspaces").iterdir():
            (folder / "go").touch()
        status, _, _ = await finished(running)

    assert status == 0
    assert lines_of(tmp_path) == ["t1", "t2"]
