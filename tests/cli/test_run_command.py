import json
import os
import signal
from pathlib import Path

from harness_actors.testing import LoopbackServer
from tests.cli.commands import answers, finished, started, works


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
        status, _, error = await finished(running)

    assert status == 1
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
    assert "interrupted; harness ctl run resume " in error
    assert "Traceback" not in error
