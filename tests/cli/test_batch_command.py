import asyncio
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_actors.batch.task_file import TaskFile
from harness_actors.cli.app import app
from harness_actors.testing import LoopbackServer
from tests.batch.fake_runtime import FakeRuntime, Journal, a_batch, outcomes_of
from tests.cli.commands import Command, finished, started, works

NOBODY = LoopbackServer(port=9)
"""A server that is not there: nothing may be asked."""
TASK = {"task": "write it", "check": {"command": "grep -q hello b.txt"}}


def tasks_file(folder: Path, *tasks: object) -> Path:
    path = folder / "tasks.jsonl"
    lines = [task if isinstance(task, str) else json.dumps(task) for task in tasks]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def command(folder: Path, server: LoopbackServer, *flags: str) -> list[str]:
    # With a workspace the general agent has tools.
    (folder / "start").mkdir(exist_ok=True)
    return [
        *("batch", str(folder / "tasks.jsonl"), "--run-dir", str(folder / "run")),
        *("--runtime", "local", "--workspace", str(folder / "start")),
        *("--model", "scripted", "--model-base-url", server.base_url),
        *flags,
    ]


def lines_of(folder: Path) -> list[str]:
    lines = (folder / "run" / "results.jsonl").read_text().splitlines()
    return [json.loads(line)["id"] for line in lines]


def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


async def interrupted(running: Command) -> tuple[int, str]:
    running.process.send_signal(signal.SIGINT)
    status, out, _ = await finished(running)
    return status, out


async def test_a_batch_does_its_tasks_and_says_where_the_results_are(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(8)))
    async with LoopbackServer(works) as server:
        status, out, _ = await finished(await started(command(tmp_path, server)))

    assert status == 0
    assert "8/8 done (8 ok, 0 failed)" in out
    assert "8 of 8 tasks" in out
    assert "8 passed, 0 failed" in out
    assert str(tmp_path / "run" / "results.jsonl") in out
    assert sorted(lines_of(tmp_path)) == [f"t{number}" for number in range(8)]


async def test_json_is_a_line_per_outcome_and_the_summary_last(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(3)))
    async with LoopbackServer(works) as server:
        status, out, _ = await finished(await started(command(tmp_path, server, "--json")))

    *outcomes, last = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert {one["id"] for one in outcomes} == {"t0", "t1", "t2"}
    assert last["summary"]["checks"] == {"passed": 3, "failed": 0}


async def test_a_check_that_fails_is_told_by_the_exit_status(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", "task": "x", "check": {"command": "exit 7"}})
    async with LoopbackServer(works) as server:
        status, out, _ = await finished(await started(command(tmp_path, server)))

    assert status == 1
    assert "1/1 done (0 ok, 0 failed, 1 failed their check)" in out
    assert "0 passed, 1 failed: exit 7" in out


async def test_an_endpoint_that_is_not_there_is_the_cause_in_the_table(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", "task": "x"} for number in range(3)))
    status, out, _ = await finished(await started(command(tmp_path, NOBODY)))

    rows = [line for line in out.splitlines() if line.startswith("failed(model_error)")]
    assert status == 1
    assert len(rows) == 1
    assert "  3: ModelSetupError: " in rows[0]
    assert "cannot connect to http://127.0.0.1:9/v1 after " in rows[0]


async def test_with_json_a_terminal_on_stderr_shows_how_far_it_is(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", **TASK})
    ours, theirs = os.openpty()
    async with LoopbackServer(works) as server:
        running = await started(command(tmp_path, server, "--json"), theirs)
        os.close(theirs)
        drawn = asyncio.create_task(asyncio.to_thread(all_of, ours))
        status, out, _ = await finished(running)

    *_, last = [json.loads(line) for line in out.splitlines()]
    assert (status, last["summary"]["verdicts"]) == (0, {"ok": 1})
    assert "1/1 done (1 ok" in await drawn


def all_of(terminal: int) -> str:
    """What was written to a terminal until its other end was closed."""
    drawn = b""
    try:
        while piece := os.read(terminal, 4096):
            drawn += piece
    except OSError:
        pass  # that is how its end is told
    finally:
        os.close(terminal)
    return drawn.decode()


async def test_a_wrong_key_fails_each_run_with_the_providers_word(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", "task": "x"})
    async with LoopbackServer(works, key="right") as server:
        running = await started(command(tmp_path, server, "--json"), OPENAI_API_KEY="wrong")
        status, out, _ = await finished(running)

    outcome = json.loads(out.splitlines()[0])
    assert status == 1
    assert (outcome["status"], outcome["reason"]["kind"]) == ("failed", "model_error")
    assert "401" in outcome["error"]["message"]


async def test_ctrl_c_parks_what_is_in_flight_and_the_same_command_goes_on(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(12)))
    async with LoopbackServer(works) as server:
        first = await started(command(tmp_path, server, "-n", "3"))
        await server.until_asked(9)
        status, out = await interrupted(first)
        after_first = lines_of(tmp_path)
        asked = server.requests

        again = await started(command(tmp_path, server, "-n", "3"))
        status_again, _, _ = await finished(again)

    assert status == 130
    assert "the same command goes on" in out
    assert 1 <= len(after_first) < 12
    assert status_again == 0
    assert sorted(lines_of(tmp_path)) == sorted(f"t{number}" for number in range(12))
    # Rounds that were in flight were finished and kept: nothing was asked twice.
    assert (asked, server.requests) == (asked, 24)
    assert len(list((tmp_path / "run" / "workspaces").iterdir())) == 12


async def test_ctrl_c_twice_leaves_at_once_and_the_same_command_goes_on(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(4)))
    async with LoopbackServer(works) as server:
        server.hold()
        first = await started(command(tmp_path, server))
        await server.until_open(4)
        first.process.send_signal(signal.SIGINT)
        await first.until_said("Ctrl-C again leaves at once")
        status, out = await interrupted(first)
        server.release()

        again = await started(command(tmp_path, server))
        status_again, _, _ = await finished(again)

    assert (status, status_again) == (130, 0)
    assert "4 runs" in out.partition("unfinished")[2].splitlines()[0]
    assert len(list((tmp_path / "run" / "workspaces").iterdir())) == 4


async def test_tasks_whose_workspaces_were_removed_meanwhile_are_begun_again(
    tmp_path: Path,
) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(2)))
    async with LoopbackServer(works) as server:
        server.hold()
        first = await started(command(tmp_path, server))
        await server.until_open(2)
        first.process.send_signal(signal.SIGINT)
        await first.until_said("stopping after the rounds in flight")
        server.release()
        status, _, _ = await finished(first)
        folders = list((tmp_path / "run" / "workspaces").iterdir())
        for folder in folders:
            shutil.rmtree(folder)

        status_again, out, _ = await finished(await started(command(tmp_path, server)))

    assert (status, len(folders), status_again) == (130, 2, 0), out
    results = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["attempt"] for line in results] == [2, 2]
    assert "2 passed, 0 failed" in out
    assert "2 attempts that another one followed" in out


async def test_a_command_that_was_killed_goes_on_without_loss(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(12)))
    async with LoopbackServer(works) as server:
        first = await started(command(tmp_path, server, "-n", "3"))
        await server.until_asked(12)
        first.process.kill()
        status, _, _ = await finished(first)

        again = await started(command(tmp_path, server, "-n", "3"))
        status_again, _, _ = await finished(again)

    assert (status, status_again) == (-signal.SIGKILL, 0)
    assert sorted(lines_of(tmp_path)) == sorted(f"t{number}" for number in range(12))
    assert len(list((tmp_path / "run" / "workspaces").iterdir())) == 12


async def test_two_commands_do_not_work_on_one_directory(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", **TASK})
    async with LoopbackServer(works) as server:
        server.hold()
        first = await started(command(tmp_path, server))
        await server.until_open(1)

        status, _, error = await finished(await started(command(tmp_path, server)))
        server.release()
        status_first, _, _ = await finished(first)

    assert (status, status_first) == (2, 0)
    assert f"the process {first.process.pid} works on it" in error
    assert "Traceback" not in error


def held_to(predicate: str) -> str:
    output = {"id": "a", "description": "b", "predicate": json.loads(predicate)}
    return json.dumps({"task": "x", "contract": {"goal": "c", "outputs": [output]}})


@pytest.mark.parametrize(
    ("lines", "flags", "fault"),
    [
        (["{"], [], "line 1: not JSON"),
        (['{"id": "a", "task": "x"}'] * 2, [], "line 2: the id 'a' is that of line 1, too"),
        (
            ['{"id": "a", "task": "x"}', '{"id": "a@2", "task": "x"}'],
            ["--epochs", "2"],
            "line 2: the id 'a@2' is what --epochs names a further run of line 1",
        ),
        (['{"task": "x", "workspace": "no"}'], [], "line 1: workspace: there is no folder"),
        (['{"task": "x", "contract": {}}'], [], "line 1: contract: is empty; say null"),
        (['{"task": "x", "contract": {"outputs": []}}'], [], "contract.goal: is missing"),
        (
            ['{"task": "x"}', held_to('{"custom": "no"}')],
            [],
            "line 2: contract.outputs[0].predicate: no predicate 'no' is registered",
        ),
        (
            [held_to('{"model_judged": {"rubric": "good?", "model": "no"}}')],
            [],
            "line 1: contract.outputs[0].predicate",
        ),
        ([held_to('{"tool_result_success": "no"}')], [], "line 1: contract.outputs[0].predicate: "),
        (['{"task": "x"}'], ["--max-turns", "0"], "error: --max-turns: must be a whole number"),
        (['{"task": "x"}'], ["-n", "0"], "error: --concurrency: must be a whole number"),
        (['{"task": "x"}'], ["--agent", "no.yaml"], "no.yaml: No such file"),
        (['{"task": "x"}'], ["-M", "temperature"], "-M: must be KEY=VALUE"),
        (['{"task": "x"}'], ["--accept-changes", "--retry-changed"], "give one of the two"),
        (['{"task": "x"}'], ["--workspace", "no"], "--workspace: there is no folder 'no'"),
        (['{"task": "x"}'], ["--model", "local/other"], "no embedded model 'local/other'"),
        (['{"task": "x"}'], ["--budget", "5"], "no price is known for 'scripted'"),
        (['{"task": "x"}'], ["--cost-limit", "5"], "use --token-limit"),
    ],
)
def test_bad_input_is_told_in_a_line_and_nothing_is_run(
    tmp_path: Path, lines: list[str], flags: list[str], fault: str
) -> None:
    tasks_file(tmp_path, *lines)

    result = CliRunner().invoke(app, command(tmp_path, NOBODY, *flags))

    assert result.exit_code == 2
    assert fault in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "run").exists()


def test_a_bound_on_cost_that_would_bound_nothing_is_refused_in_a_file_as_well(
    tmp_path: Path,
) -> None:
    tasks_file(tmp_path, TASK)
    agent = tmp_path / "agent.yaml"
    agent.write_text("model: scripted\nharness: {limits: {cost_usd: 0.5}}\n")

    result = CliRunner().invoke(app, command(tmp_path, NOBODY, "--agent", str(agent)))

    assert result.exit_code == 2
    assert f"{agent}: harness.limits.cost_usd: no price is known for 'scripted'" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ("HARNESS_CELL_IDLE_S", "must be a number of seconds, not '-1'"),
        ("HARNESS_WARM_CELLS", "must be a number of cells, not '-1'"),
    ],
)
def test_a_bad_bound_of_idle_cells_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, problem: str
) -> None:
    monkeypatch.setenv(variable, "-1")
    tasks_file(tmp_path, TASK)

    result = CliRunner().invoke(app, command(tmp_path, NOBODY, "--runtime", "ray"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert f"{variable}: {problem}" in result.stderr
    assert not (tmp_path / "run").exists()


def test_errors_are_json_for_scripts(tmp_path: Path) -> None:
    tasks_file(tmp_path, "{")

    result = CliRunner().invoke(app, command(tmp_path, NOBODY, "--json"))

    assert (result.exit_code, result.stdout) == (2, "")
    assert json.loads(result.stderr)["error"]["type"] == "BadInputError"


async def test_a_log_gets_plain_lines(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", **TASK})
    async with LoopbackServer(works) as server:
        _, out, _ = await finished(await started(command(tmp_path, server)))

    assert "\x1b" not in out
    assert await asyncio.to_thread((tmp_path / "run" / "summary.json").exists)


async def test_a_budget_stops_the_batch_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(6)))
    priced = ("--model", "gpt-4.1", "-n", "1")
    async with LoopbackServer(works) as server:
        # Any run costs more than this, so each command has room for one.
        poor = await started(command(tmp_path, server, *priced, "--budget", "0.000001"))
        status, out, _ = await finished(poor)
        done = len(lines_of(tmp_path))
        rich = await started(command(tmp_path, server, *priced, "--budget", "100"))
        status_rich, _, _ = await finished(rich)

    assert (status, done) == (1, 1)
    assert "the budget is spent" in out
    assert (status_rich, len(lines_of(tmp_path))) == (0, 6)


def an_agent_file(folder: Path, server: LoopbackServer, instructions: str) -> tuple[str, str]:
    path = folder / "fixer.yaml"
    path.write_text(
        f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
        f"persona: {{instructions: {instructions}}}\n"
        "environment: {tools: [write_file]}\n"
    )
    return "--agent", str(path)


async def test_other_instructions_are_told_before_anything_runs_and_then_chosen(
    tmp_path: Path,
) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(3)))
    async with LoopbackServer(works) as server:
        flags = an_agent_file(tmp_path, server, "Be kind.")
        await finished(await started(command(tmp_path, server, *flags)))
        summary = (tmp_path / "run" / "summary.json").read_bytes()
        asked = server.requests

        flags = an_agent_file(tmp_path, server, "Be quick.")
        status, out, error = await finished(await started(command(tmp_path, server, *flags)))
        refused = server.requests - asked
        unchanged = (tmp_path / "run" / "summary.json").read_bytes() == summary

        tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(4)))
        accept = await started(command(tmp_path, server, *flags, "--accept-changes"))
        status_accept, mixed, _ = await finished(accept)
        again = await started(command(tmp_path, server, *flags, "--retry-changed"))
        status_again, whole, _ = await finished(again)

    assert (status, out, refused, unchanged) == (2, "", 0, True)
    first, changed, advice = error.splitlines()
    assert first == f"error: {tmp_path / 'run'}: made with another set-up"
    assert changed.startswith("3 results made with fixer on scripted (")
    assert changed.endswith("instructions 'Be kind.' → 'Be quick.'")
    assert "--accept-changes" in advice
    assert (status_accept, status_again) == (0, 0)
    assert "2 set-ups, of which these results are a mixture" in mixed
    assert "set-ups" not in whole
    assert server.requests == asked + 2 + 6


async def test_runs_of_a_killed_command_are_refused_under_another_agent_and_done_again_by_choice(
    tmp_path: Path,
) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(2)))
    async with LoopbackServer(works) as server:
        server.hold()
        flags = an_agent_file(tmp_path, server, "Be kind.")
        first = await started(command(tmp_path, server, *flags))
        await server.until_open(2)
        first.process.kill()
        await finished(first)
        server.release()

        flags = an_agent_file(tmp_path, server, "Be quick.")
        status, _, error = await finished(await started(command(tmp_path, server, *flags)))
        again = await started(command(tmp_path, server, *flags, "--retry-changed"))
        status_again, _, _ = await finished(again)

    assert status == 2
    assert "2 runs made with fixer on scripted (" in error
    assert status_again == 0
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["attempt"] for line in lines} == {2}


async def test_tasks_that_name_their_agents_need_none_of_the_command(tmp_path: Path) -> None:
    async with LoopbackServer(works) as server:
        (tmp_path / "own.yaml").write_text(
            f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
            "environment: {tools: [write_file]}\n"
        )
        path = tasks_file(tmp_path, {"id": "t1", **TASK, "agent": "own.yaml"})
        run_dir = str(tmp_path / "run")
        arguments = ["batch", str(path), "--run-dir", run_dir, "--runtime", "local"]
        status, _, _ = await finished(await started(arguments))

        path.write_text(json.dumps(TASK))
        status_without, _, error = await finished(await started(arguments))

    assert status == 0
    assert status_without == 2
    assert "no model is named" in error


def test_a_missing_key_is_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_keys(monkeypatch)
    path = tasks_file(tmp_path, TASK)
    arguments = ["batch", str(path), "--run-dir", str(tmp_path / "run"), "--model", "gpt-4.1"]

    result = CliRunner().invoke(app, arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "set OPENAI_API_KEY in the environment" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("named_by", ["flag", "file", "task"])
def test_a_finished_batch_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    (tmp_path / "agent.yaml").write_text("model: gpt-4.1\n")
    own = {"agent": "agent.yaml"} if named_by == "task" else {}
    path = tasks_file(tmp_path, {"id": "t1", "task": "x", **own}, {"id": "t2", "task": "y", **own})
    before = a_batch(TaskFile(path), tmp_path / "run", FakeRuntime(Journal()))
    asyncio.run(outcomes_of(before))
    without_keys(monkeypatch)
    flags = {
        "flag": ["--model", "gpt-4.1"],
        "file": ["--agent", str(tmp_path / "agent.yaml")],
        "task": [],
    }
    # It was made with another agent: these take their results as they are.
    choices = ["--accept-changes", *flags[named_by]]
    arguments = ["batch", str(path), "--run-dir", str(tmp_path / "run"), *choices]

    result = CliRunner().invoke(app, arguments)
    with path.open("a") as file:
        file.write(json.dumps({"id": "t3", "task": "z", **own}) + "\n")
    with_one_more = CliRunner().invoke(app, arguments)

    assert (result.exit_code, result.stderr) == (0, "")
    assert "2/2 done" in result.stdout
    assert (with_one_more.exit_code, with_one_more.stdout) == (2, "")
    assert "set OPENAI_API_KEY in the environment" in with_one_more.stderr
    assert lines_of(tmp_path) == ["t1", "t2"]


async def test_a_batch_of_which_only_checks_are_left_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_keys(monkeypatch)
    tasks_file(tmp_path, {"id": "t1", **TASK}, {"id": "t2", **TASK})
    async with LoopbackServer(works) as server:
        with_key = await started(command(tmp_path, server), OPENAI_API_KEY="sk-1")
        status, _, _ = await finished(with_key)
    results = tmp_path / "run" / "results.jsonl"
    results.write_text("")  # as where the command is killed before the first check is over
    # Of another address, so the set-up is another one.
    arguments = ["--runtime", "local", "--model", "gpt-4.1", "--accept-changes"]
    run_dir = str(tmp_path / "run")
    again = ["batch", str(tmp_path / "tasks.jsonl"), "--run-dir", run_dir, *arguments]
    status_again, out, error = await finished(await started(again))

    assert (status, status_again, error) == (0, 0, "")
    assert "2 passed, 0 failed" in out
    assert sorted(lines_of(tmp_path)) == ["t1", "t2"]


async def test_sigterm_parks_as_ctrl_c_does_and_what_was_used_is_told(tmp_path: Path) -> None:
    tasks_file(tmp_path, {"id": "t1", **TASK})
    async with LoopbackServer(works) as server:
        server.hold()
        running = await started(command(tmp_path, server))
        await server.until_open(1)
        running.process.send_signal(signal.SIGTERM)
        await running.until_said("Ctrl-C again leaves at once")
        server.release()
        status, out, _ = await finished(running)

    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert status == 130
    assert "the same command goes on" in out
    assert rows["tokens"].split()[1] != "0"
    assert rows["unfinished"].startswith("unfinished  1 run: ")
    assert "results.jsonl" not in out, "there is no such file yet"


def test_the_same_command_with_nothing_left_starts_nothing(tmp_path: Path) -> None:
    path = tasks_file(tmp_path, {"id": "t1", "task": "x"}, {"id": "t2", "task": "x"})
    before = a_batch(TaskFile(path), tmp_path / "run", FakeRuntime(Journal()))
    asyncio.run(outcomes_of(before))
    # A Ray that is not there would be told.
    flags = ("--runtime", "ray", "--address", "127.0.0.1:9", "--accept-changes")

    result = CliRunner().invoke(app, command(tmp_path, NOBODY, *flags))

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("2/2 done")
    assert str(tmp_path / "run" / "results.jsonl") in result.stdout


@pytest.mark.parametrize(
    ("how", "choice"), [("copied", "--retry-changed"), ("moved", "--accept-changes")]
)
async def test_runs_of_a_directory_that_was_copied_or_moved_write_nothing_elsewhere(
    tmp_path: Path, how: str, choice: str
) -> None:
    tasks_file(tmp_path, *({"id": f"t{number}", **TASK} for number in range(2)))
    run, kept = tmp_path / "run", tmp_path / "kept"
    async with LoopbackServer(works) as server:
        server.hold()
        first = await started(command(tmp_path, server))
        await server.until_open(2)
        first.process.kill()
        await finished(first)
        server.release()
        shutil.move(run, kept) if how == "moved" else shutil.copytree(run, kept)
        asked = server.requests

        there = [str(kept) if one == str(run) else one for one in command(tmp_path, server)]
        status, _, error = await finished(await started(there))
        refused = server.requests - asked
        status_again, out, _ = await finished(await started([*there, choice]))

    assert (status, refused) == (2, 0)
    assert f"2 unfinished runs in {str(run / 'workspaces')!r}, not here" in error
    assert "--retry-changed" in error
    assert "--accept-changes" in error
    assert status_again == 0, out
    assert "2 passed, 0 failed" in out
    assert list(run.rglob("b.txt")) == []
