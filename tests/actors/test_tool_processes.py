"""Processes of tools end with their run and with their actor, in every runtime."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.messages import Message
from harness_actors.ports import Tool
from harness_actors.records import RunSpec, WorkspaceSpec
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import CommandRunner, tool
from harness_actors.tools.processes import read_process
from tests.actors.followers import opened, results, submit
from tests.actors.tasks import replies

SLEEP = "echo $$ >> pids; exec sleep 300"
# In a session of its own, without a parent, and with nothing of us in its environment.
SERVER = f"(setsid env -i sh -c '{SLEEP}' >/dev/null 2>&1 &);"
# Who has ended but was not collected yet runs nothing any more, though a signal still finds it.
SURVIVORS = (
    "for pid in $(cat pids); do"
    " grep -qs '^State:[^ZX]*$' /proc/$pid/status && echo $pid >> survivors; done; true"
)
WAIT = "until [ -e go ]; do sleep 0.01; done"


@tool
def start_past_the_harness(folder: str) -> str:
    """Start a process as a user's own tool may do.

    Args:
        folder: Where it notes its pid.
    """
    subprocess.Popen(["sh", "-c", SLEEP], cwd=folder, start_new_session=True)
    return "started"


def commands_then_complete(*commands: str | Reply) -> Program:
    """An agent that runs a command in each round, or calls something else, then completes."""

    def script(messages: Sequence[Message]) -> Reply:
        said = replies(messages)
        if said == len(commands):
            return Reply.call("work_complete", {"summary": "done"})
        command = commands[said]
        if isinstance(command, Reply):
            return command
        return Reply.call("run_command", {"command": command, "timeout_s": 300})

    tools: list[Tool] = [CommandRunner().as_tool(), start_past_the_harness]
    return Program.of(ChatAgent(model=ScriptedModel(script), tools=tools))


def run_in(folder: Path, program: Program) -> RunSpec:
    folder.mkdir()
    return program.spec("task", HarnessConfig(), workspace=WorkspaceSpec(path=str(folder)))


def numbers(file: Path) -> list[int]:
    return list(map(int, file.read_text().split())) if file.exists() else []


async def pids_in(folder: Path, count: int) -> list[int]:
    """The pids that commands noted, once there are so many."""
    async with asyncio.timeout(60):
        while len(numbers(folder / "pids")) < count:  # noqa: ASYNC110 - others write it
            await asyncio.sleep(0.01)
    return numbers(folder / "pids")


async def ends(pid: int) -> bool:
    """Whether a process ends soon."""
    return await asyncio.to_thread(_ends, pid)


def _ends(pid: int) -> bool:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(2000)
        finally:
            os.close(handle)
    return read_process(pid) is None


async def test_a_server_of_a_run_lives_until_the_run_is_over(tmp_path: Path) -> None:
    ready = "until [ -e pids ]; do sleep 0.01; done"
    program = commands_then_complete(SERVER, f"{ready}; {SURVIVORS}")
    spec = run_in(tmp_path / "work", program)
    async with opened("local", tmp_path / "runs.db") as runtime:
        await submit(runtime, program, [spec])
        ended = (await results(runtime, [spec.run_id]))[spec.run_id]
        assert ended.status == "done"
        (server,) = numbers(tmp_path / "work" / "pids")
        assert numbers(tmp_path / "work" / "survivors") == [server]
        assert await ends(server)


@pytest.mark.parametrize("mode", ["cancel", "park_now"])
async def test_a_server_of_a_run_that_is_stopped_ends(mode: str, tmp_path: Path) -> None:
    program = commands_then_complete(SERVER, f"(sleep 300 & {SLEEP}) & {WAIT}")
    spec = run_in(tmp_path / "work", program)
    other = run_in(tmp_path / "other", program)
    async with opened("local", tmp_path / "runs.db") as runtime:
        await submit(runtime, program, [spec, other])
        mine = await pids_in(tmp_path / "work", 2)
        theirs = await pids_in(tmp_path / "other", 2)
        await runtime.stop([spec.run_id], mode)  # type: ignore[arg-type]
        assert all([await ends(pid) for pid in mine])
        assert all(read_process(pid) is not None for pid in theirs)
    assert all([await ends(pid) for pid in theirs])


@pytest.mark.ray
@pytest.mark.timeout(200)
async def test_a_run_goes_on_when_the_processes_of_its_dead_actor_are_gone(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    program = commands_then_complete(
        Reply.call("start_past_the_harness", {"folder": str(work)}),
        f"{SERVER} {SLEEP}",
        f"{SURVIVORS}; {SERVER.replace('pids', 'late')} until [ -e late ]; do sleep 0.01; done",
    )
    spec = run_in(work, program)
    async with opened("ray", tmp_path / "runs.db") as runtime:
        await submit(runtime, program, [spec])
        pids = await pids_in(work, 3)
        started_past = read_process(pids[0])
        assert started_past is not None
        actor = started_past.parent
        supervisor = supervisor_of(tmp_path / "runs.db", actor)
        os.kill(actor, signal.SIGKILL)
        ended = (await results(runtime, [spec.run_id]))[spec.run_id]

        (late,) = numbers(work / "late")
        assert await ends(late), "it had to end with the run, not with the cell"

    assert ended.status == "done"
    assert numbers(work / "survivors") == []
    assert [pid for pid in (*pids, supervisor) if read_process(pid) is not None] == []


def supervisor_of(store: Path, actor: int) -> int:
    """The process that the journal has for the supervisor of an actor."""
    journal = JournalReader(store)
    try:
        marks = journal.load_processes()
    finally:
        journal.close()
    (role,) = (mark.role for mark in marks if mark.pid == actor)
    (pid,) = (mark.pid for mark in marks if mark.role == f"supervisor of {role}")
    return pid


async def test_a_script_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), cwd=tmp_path, env={**os.environ, "HARNESS_HOME": str(tmp_path)}
    )
    pids = await pids_in(tmp_path, 2)
    process.kill()
    await process.wait()
    assert all([await ends(pid) for pid in pids])


SCRIPT = f"""
import asyncio

from harness_actors import AgentHarness, ChatAgent
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import CommandRunner

command = {SERVER + SLEEP!r}
model = ScriptedModel([Reply.call("run_command", {{"command": command}})])
agent = ChatAgent(model=model, tools=[CommandRunner().as_tool()])
asyncio.run(AgentHarness(agent, runtime="local", workspace=".").run("Serve."))
"""
