import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, over_messages
from tests.cli.commands import END_WITHIN_S, answers, finished, started, works


def command(task: str, server: LoopbackServer, *flags: str) -> list[str]:
    model = ("--model", "scripted", "--model-base-url", server.base_url)
    return ["run", task, "--runtime", "local", *model, *flags]


async def test_the_answer_is_on_stdout_and_the_events_are_on_stderr(tmp_path: Path) -> None:
    async with LoopbackServer(answers) as server:
        running = await started(command("hello", server), HARNESS_HOME=str(tmp_path))
        status, out, error = await finished(running)

    assert status == 0
    assert out == "You said: hello\n"
    assert "work_complete" in error
    assert "done(completed)" in error


async def test_json_is_the_result_alone(tmp_path: Path) -> None:
    async with LoopbackServer(answers) as server:
        running = await started(command("hello", server, "--json"), HARNESS_HOME=str(tmp_path))
        status, out, _ = await finished(running)

    result = json.loads(out)
    assert status == 0
    assert (result["status"], result["output_text"]) == ("done", "You said: hello")


async def test_a_json_stream_is_a_line_for_each_event_and_text_and_the_result_last(
    tmp_path: Path,
) -> None:
    async with LoopbackServer(answers) as server:
        flags = ("--json", "--stream")
        running = await started(command("hello", server, *flags), HARNESS_HOME=str(tmp_path))
        status, out, _ = await finished(running)

    *events, result = (json.loads(line) for line in out.splitlines())
    assert status == 0
    assert (result["status"], result["output_text"]) == ("done", "You said: hello")
    assert result["type"] == "result"
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_completed")


GAZING = """
import time
from pathlib import Path
from typing import Any
from harness_actors import tool

@tool(effect="read_only")
def gaze(folder: str) -> str:
    \"\"\"Look until the file `seen` is there.\"\"\"
    while not (Path(folder) / "seen").exists():
        time.sleep(0.02)
    return "nothing new"
"""


@pytest.mark.parametrize("flags", [(), ("--json", "--stream")])
async def test_a_call_is_shown_while_its_tool_is_at_work(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    (tmp_path / "gazing.py").write_text(GAZING)

    def gazes(messages: Sequence[Message]) -> Reply:
        if messages[-1].role == "tool":
            return Reply.call("work_complete", {"summary": "seen"})
        return Reply.call("gaze", {"folder": str(tmp_path)})

    async with LoopbackServer(over_messages(gazes)) as server:
        agent = tmp_path / "agent.yaml"
        agent.write_text(
            f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
            "environment: {tools: ['gazing:gaze']}\n"
        )
        words = ["run", "go", "--runtime", "local", "--agent", str(agent), *flags]
        running = await started(words, HARNESS_HOME=str(tmp_path))
        told = running.process.stdout if flags else running.process.stderr
        assert told is not None
        shown = ""
        async with asyncio.timeout(END_WITHIN_S):
            while "tool_called" not in shown and "→ gaze" not in shown:
                line = (await told.readline()).decode()
                assert line, shown
                shown += line
        (tmp_path / "seen").touch()
        status, out, error = await finished(running)

    assert status == 0
    assert (shown + out + error).count("gaze {" if not flags else '"tool_name": "gaze"') == 1


async def test_a_workspace_is_worked_in_in_place(tmp_path: Path) -> None:
    workspace = tmp_path / "mine"
    workspace.mkdir()
    async with LoopbackServer(works) as server:
        flags = ("--workspace", str(workspace))
        running = await started(command("x", server, *flags), HARNESS_HOME=str(tmp_path / "home"))
        status, _, _ = await finished(running)

    assert status == 0
    assert (workspace / "b.txt").read_text() == "hello\n"


async def test_an_agent_with_a_template_works_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "template").mkdir()
    agent = tmp_path / "writer.yaml"
    agent.write_text("environment: {tools: [write_file], workspace: {from: template}}")
    async with LoopbackServer(works) as server:
        flags = ("--agent", str(agent))
        running = await started(
            command("x", server, *flags),
            HARNESS_HOME=str(tmp_path / "home"),
            TMPDIR=str(tmp_path),
        )
        status, _, error = await finished(running)

    assert status == 0
    assert os.listdir(tmp_path / "template") == []
    (copy,) = (name for name in os.listdir(tmp_path) if name.startswith("harness-run-"))
    assert str(tmp_path / copy) in error
    assert os.listdir(tmp_path / copy) == ["b.txt"]


async def test_a_run_that_does_not_end_well_is_told_by_the_exit_status(tmp_path: Path) -> None:
    async with LoopbackServer(works, models=["another"]) as server:
        running = await started(command("x", server), HARNESS_HOME=str(tmp_path))
        status, out, error = await finished(running)

    assert (status, out) == (1, ""), "there is no answer, not even an empty line"
    assert "failed(model_error)" in error
    assert "Traceback" not in error


async def test_no_model_is_bad_input(tmp_path: Path) -> None:
    running = await started(["run", "x", "--runtime", "local"], HARNESS_HOME=str(tmp_path))
    status, _, error = await finished(running)

    assert status == 2
    assert "no model is named; for example --model gpt-4.1-mini" in error


async def test_ctrl_c_keeps_the_run(tmp_path: Path) -> None:
    async with LoopbackServer(works) as server:
        server.hold()
        running = await started(command("x", server), HARNESS_HOME=str(tmp_path))
        await server.until_open(1)
        running.process.send_signal(signal.SIGINT)
        server.release()
        status, out, error = await finished(running)

    assert (status, out) == (130, "")
    assert "parked; harness ctl run resume " in error
    assert "Traceback" not in error


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["told", "json"])
async def test_who_leaves_by_a_second_ctrl_c_is_told_how_to_go_on(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with LoopbackServer(works) as server:
        server.hold()
        running = await started(command("x", server, *flags), HARNESS_HOME=str(tmp_path))
        await server.until_open(1)
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr is not None
        async with asyncio.timeout(END_WITHIN_S):
            while b"press Ctrl-C again" not in await running.process.stderr.readline():
                pass
        running.process.send_signal(signal.SIGINT)
        status, out, error = await finished(running)

    (run,) = JournalReader(tmp_path / "runs.db").headings()
    assert (status, out) == (130, "")
    assert error == f"parked; harness ctl run resume {run.run_id} --runtime local goes on with it\n"


# ---- where it runs ----------------------------------------------------------------------

MODEL = ("--model", "scripted", "--model-base-url", "http://127.0.0.1:1")
ELSEWHERE = (
    ("foo", "not HOST:PORT"),
    ("ray://10.0.0.1:10001", "Ray Client"),
    ("http://10.0.0.1:8265", "a dashboard"),
    ("some where:6379", "not HOST:PORT"),
)
LOOKING = (("ctl", "run", "cancel", "x"), ("ctl", "cell", "list"))
COMMANDS = (
    ("run", "x", *MODEL),
    ("chat", *MODEL),
    ("batch", "tasks.jsonl", "--run-dir", "out", *MODEL),
    ("ctl", "run", "resume", "x"),
)


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.parametrize(("address", "problem"), ELSEWHERE)
@pytest.mark.parametrize("words", [*COMMANDS, *LOOKING])
def test_what_is_no_address_is_bad_input_before_anything_is_started(
    harness: Callable[..., Result], words: tuple[str, ...], address: str, problem: str
) -> None:
    refused = harness(*words, "--address", address)

    assert (refused.exit_code, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"error: --address: {address!r} cannot be used: ")
    assert problem in line


@pytest.mark.parametrize("words", COMMANDS)
def test_a_variable_that_is_no_address_is_bad_input_too(
    harness: Callable[..., Result], words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "foo")

    refused = harness(*words)

    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: RAY_ADDRESS: 'foo' cannot be used: ")


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("HARNESS_CELL_IDLE_S", "10s", "must be a number of seconds, not '10s'"),
        ("HARNESS_WARM_CELLS", "few", "must be a number of cells, not 'few'"),
    ],
)
def test_how_long_a_cell_may_be_idle_is_looked_at_before_anything_is_started(
    harness: Callable[..., Result],
    words: tuple[str, ...],
    variable: str,
    value: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)

    refused = harness(*words)

    assert (refused.exit_code, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert f"{variable}: {problem}" in line


@pytest.mark.parametrize("words", COMMANDS)
def test_an_address_is_refused_where_no_ray_is_used(
    harness: Callable[..., Result], words: tuple[str, ...]
) -> None:
    refused = harness(*words, "--runtime", "local", "--address", "127.0.0.1:6379")

    assert refused.exit_code == 2
    assert "--address: it names a Ray, and --runtime local uses none" in refused.stderr


TYPED = """
model: {id: scripted}
persona:
  output_type: {type: object, required: [total], properties: {total: {type: integer}}}
"""


async def test_a_value_is_on_stdout_alone_and_a_part_of_the_json(tmp_path: Path) -> None:
    def counts(body: Mapping[str, Any]) -> Reply:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        value = {"total": "four" if spoken == 0 else 4}
        return Reply.call("work_complete", {"summary": "Counted.", "output": value})

    (tmp_path / "agent.yaml").write_text(TYPED)
    agent = ("--agent", str(tmp_path / "agent.yaml"))
    home = {"HARNESS_HOME": str(tmp_path / "home")}
    async with LoopbackServer(counts) as server:
        words = ["run", "count", "--runtime", "local", "--model-base-url", server.base_url, *agent]
        status, out, error = await finished(await started(words, **home))
        assert (status, out) == (0, '{"total": 4}\n'), error
        status, out, _ = await finished(await started([*words, "--json"], **home))
    result = json.loads(out)
    assert status == 0
    assert (result["output"], result["output_text"]) == ({"total": 4}, "Counted.")
    (line,) = [x for x in error.splitlines() if x.startswith("run ")]
    show = ["ctl", "run", "show", line.split()[1]]
    status, out, _ = await finished(await started([*show, "--json"], **home))
    shown = json.loads(out)
    assert shown["result"]["output"] == {"total": 4}
    status, out, _ = await finished(await started(show, **home))
    assert '{"total": 4}' in out
    status, out, _ = await finished(await started(["replay", line.split()[1]], **home))
    assert status == 0, out
