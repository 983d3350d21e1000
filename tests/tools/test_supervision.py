"""Supervised tool processes: none outlives its actor, its run, its call or its bound."""

import asyncio
import ctypes
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext, ToolProcess
from harness_actors.tools.command import run_command
from harness_actors.tools.processes import read_process
from harness_actors.tools.shell import run_shell
from harness_actors.tools.spawn import COMMAND_VARIABLE
from harness_actors.tools.supervision import client
from harness_actors.tools.supervision import keeper as keepers
from harness_actors.tools.supervision import launch as launching
from harness_actors.tools.supervision import supervisor as supervisors
from harness_actors.tools.supervision.channel import Outgoing
from harness_actors.tools.supervision.client import SupervisedProcesses
from harness_actors.tools.supervision.descendants import below, children, go_first
from harness_actors.tools.supervision.frames import Frames, framed
from harness_actors.tools.supervision.launch import Launched
from harness_actors.tools.supervision.supervisor import Kept, Supervisor
from tests.tools.conftest import Call

REPOSITORY = Path(__file__).parents[2]

PTRACE_ATTACH = 16

SLEEP = "echo $$ >> pids; exec sleep 300"
CHILD = f"sh -c '{SLEEP}' &"
ALONE = f"setsid sh -c '{SLEEP}' &"
DAEMON = f"(setsid sh -c '{SLEEP}' >/dev/null 2>&1 &);"
# Its own session, a parent that is gone, and nothing of us in its environment.
ESCAPED = f"(setsid env -i sh -c '{SLEEP}' >/dev/null 2>&1 &);"
ALL = f"{CHILD} {ALONE} {DAEMON} {ESCAPED} {SLEEP}"


@pytest.fixture
def context(context: ToolContext, processes: SupervisedProcesses) -> ToolContext:
    return replace(context, processes=processes)


async def pids_in(file: Path, count: int) -> list[int]:
    """The pids in a file, once there are so many."""
    await until(lambda: len(numbers(file)) >= count)
    return numbers(file)


def numbers(file: Path) -> list[int]:
    return list(map(int, file.read_text().split())) if file.exists() else []


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if read_process(pid) is not None]


def gone_within(pids: list[int], seconds: float) -> bool:
    """Whether all of these processes end in time."""
    poll = select.poll()
    until = time.monotonic() + seconds
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            try:
                poll.register(handle, select.POLLIN)
                poll.poll(1000 * max(0.0, until - time.monotonic()))
                poll.unregister(handle)
            finally:
                os.close(handle)
    return alive(pids) == []


def supervisor_of(processes: SupervisedProcesses) -> int:
    supervisor = processes.supervisor()
    assert supervisor is not None
    return supervisor.pid


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def until(true: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.005)


class Host:
    """A process that hosts a supervisor; see `supervised_host`."""

    def __init__(self, process: asyncio.subprocess.Process, supervisor: int) -> None:
        self.process = process
        self.supervisor = supervisor

    @classmethod
    async def start(cls, folder: Path, *arguments: str) -> "Host":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.tools.supervised_host", *arguments),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        return cls(process, int(await process.stdout.readline()))

    async def ask(self, *commands: str) -> None:
        """Have it ask for commands; returns when it has written its requests."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.writelines(f"{command}\n".encode() for command in commands)
        self.process.stdin.close()
        assert await self.process.stdout.readline() == b"asked\n"


# --- its actor dies


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGKILL], [signal.SIGSTOP, signal.SIGKILL], [signal.SIGTERM]],
    ids=["killed", "stopped and killed", "terminated"],
)
async def test_nothing_outlives_its_actor_by_a_second(
    signals: list[signal.Signals], tmp_path: Path
) -> None:
    host = await Host.start(tmp_path, ALL, CHILD + "sleep 300")
    pids = await pids_in(tmp_path / "pids", 6)
    for number in signals:
        host.process.send_signal(number)
    assert gone_within([*pids, host.supervisor], 1)
    await host.process.wait()


async def test_what_an_actor_starts_past_its_supervisor_dies_with_it(tmp_path: Path) -> None:
    host = await Host.start(tmp_path, "--own", ESCAPED + SLEEP)
    pids = await pids_in(tmp_path / "pids", 4)
    host.process.kill()
    # The pipe of its output is still held by its fork until then.
    assert gone_within([*pids, host.supervisor], 1)
    await host.process.wait()


async def test_a_detached_supervisor_is_nobody_s_child(tmp_path: Path) -> None:
    host = await Host.start(tmp_path, "--own", SLEEP)
    await pids_in(tmp_path / "pids", 3)
    assert host.supervisor not in children(host.process.pid)
    host.process.kill()
    assert gone_within([host.supervisor], 1)
    await host.process.wait()


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$"])
def test_a_shell_that_starts_no_supervisor_is_told(
    monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(launching, "_DETACHED", script)
    handles = os.listdir("/proc/self/fd")

    with pytest.raises(OSError, match="did not start a supervisor"):
        launching.launch("", detached=True)

    assert os.listdir("/proc/self/fd") == handles


async def test_what_is_not_started_when_the_actor_dies_never_is(tmp_path: Path) -> None:
    host = await Host.start(tmp_path)
    # So that the requests stay where they are.
    os.kill(host.supervisor, signal.SIGSTOP)
    await host.ask(*(f"touch started-{number}" for number in range(5)))
    host.process.kill()
    await host.process.wait()
    os.kill(host.supervisor, signal.SIGCONT)
    assert gone_within([host.supervisor], 5)
    assert os.listdir(tmp_path) == []


KEEPER = """
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket
from harness_actors.tools.supervision.keeper import Keeper

class Watched(Keeper):
    def _started(self, *request):
        print("starts", flush=True)
        return super()._started(*request)

Watched(socket(AF_UNIX, SOCK_STREAM, 0, int(sys.argv[1]))).run()
"""


@pytest.mark.parametrize("dead", [False, True], ids=["living", "dead"])
def test_a_keeper_starts_nothing_for_a_supervisor_that_is_dead(dead: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "wb") as output:
        socket.send_fds(ours, [framed((20, [b"/bin/true"], {}, None))], [output.fileno()])
        if dead:
            # Before the keeper has read it, as where the supervisor is killed at this moment.
            ours.close()
        keeper = subprocess.run(
            [sys.executable, "-c", KEEPER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            check=False,
            timeout=60,
        )

    # That it is killed at once would not do: it may have done something by then.
    assert (keeper.returncode, keeper.stdout) == (0, b"" if dead else b"starts\n")


COUNTING_SELDOM = """
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket
from harness_actors.tools.supervision import keeper

keeper.FIRST_COUNT_S = keeper.LONGEST_COUNT_S = 300.0
keeper.Keeper(socket(AF_UNIX, SOCK_STREAM, 0, int(sys.argv[1]))).run()
"""


def said_by(keeper: str, *program: bytes) -> list[Any]:
    """What a keeper tells of a command that may have five processes, when it has ended well."""
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "wb") as output:
        socket.send_fds(ours, [framed((5, program, {}, None))], [output.fileno()])
        ended = subprocess.run(
            [sys.executable, "-c", keeper, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0
        said = Frames()
        said.add(ours.recv(4096))
    return list(iter(said.take, None))


def test_the_end_of_a_command_waits_for_no_count_of_its_processes() -> None:
    assert said_by(COUNTING_SELDOM, b"/bin/sleep", b"0.2") == [("exited", 0), ("gone", 0)]


EXHAUSTED_KEEPER = """
import sys
from _socket import AF_UNIX, SOCK_STREAM, socket
from harness_actors.tools.supervision import keeper

def fails_twice(function, error):
    left = [error, error]
    def failing(*given):
        if left:
            raise left.pop()
        return function(*given)
    return failing

keeper.count_below = fails_twice(keeper.count_below, MemoryError())
keeper.kill_below = fails_twice(keeper.kill_below, OSError(12, "no memory"))
keeper.Keeper(socket(AF_UNIX, SOCK_STREAM, 0, int(sys.argv[1]))).run()
"""


def test_a_keeper_without_memory_stays_until_its_command_has_ended() -> None:
    many = b"for i in $(seq 9); do sleep 300 & done; wait"
    told = said_by(EXHAUSTED_KEEPER, b"/bin/sh", b"-c", many)
    assert [message[0] for message in told] == ["overrun", "exited", "gone"]


EXHAUSTED_SUPERVISOR = """
import os, sys
from harness_actors.tools.supervision import supervisor
from harness_actors.tools.supervision.descendants import become_subreaper

fork, kill_below, failures = os.fork, supervisor.kill_below, ["kill_below", "fork"]

def failing(name, function):
    def called(*given):
        if name in failures:
            failures.remove(name)
            raise {"fork": OSError(11, "no process"), "kill_below": MemoryError()}[name]
        return function(*given)
    return called

os.dup2(int(sys.argv[1]), 3)
os.dup2(os.pidfd_open(os.getppid()), 4)
become_subreaper()
os.fork = failing("fork", fork)
supervisor.kill_below = failing("kill_below", kill_below)
supervisor.Supervisor(b"", b"").run()
assert not failures
"""


def test_a_supervisor_without_memory_starts_commands_later_and_ends_them(
    tmp_path: Path,
) -> None:
    ours, theirs = socket.socketpair()
    arguments = [sys.executable, "-c", EXHAUSTED_SUPERVISOR, str(theirs.fileno())]
    with subprocess.Popen(arguments, pass_fds=[theirs.fileno()]) as supervisor:
        theirs.close()
        with ours, open(os.devnull, "wb") as output:
            program = [b"/bin/sh", b"-c", b"cd %b; %b" % (bytes(tmp_path), ALL.encode())]
            path = {b"PATH": os.environb[b"PATH"]}
            request = framed(("start", 1, 20, program, path, None))
            socket.send_fds(ours, [request], [output.fileno()])
            pids = asyncio.run(pids_in(tmp_path / "pids", 5))

        assert supervisor.wait(60) == 0
    assert alive(pids) == []


ACTOR_DIES = """
import os, signal, subprocess, sys
from harness_actors.tools.supervision.descendants import become_subreaper
from harness_actors.tools.supervision.supervisor import Supervisor

# Its descriptors are the channel and the actor, here a child that does nothing.
channel, dies_at = map(int, sys.argv[1:])
actor = subprocess.Popen(["sleep", "300"])
os.dup2(channel, 3)
os.dup2(os.pidfd_open(actor.pid), 4)

class Watched(Supervisor):
    started = 0

    def _start(self, command, output, *request):
        super()._start(command, output, *request)
        self.started += 1
        if self.started == dies_at:
            actor.kill()
            os.waitid(os.P_PIDFD, 4, os.WEXITED | os.WNOWAIT)

become_subreaper()
watched = Watched(b"", b"")
watched.run()
print(watched.started)
"""


@pytest.mark.parametrize("dies_at", [1, 3])
def test_what_was_read_but_not_started_when_the_actor_dies_never_is(dies_at: int) -> None:
    # All requests are read in one piece, and the actor dies as one of them is started.
    ours, theirs = socket.socketpair()
    program = [b"/bin/true"]
    data = b"".join(framed(("start", number, 20, program, {}, None)) for number in range(1, 6))
    with ours, theirs, open(os.devnull, "wb") as output:
        socket.send_fds(ours, [data], [output.fileno()] * 5)
        supervisor = subprocess.run(
            [sys.executable, "-c", ACTOR_DIES, str(theirs.fileno()), str(dies_at)],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            check=False,
            timeout=60,
        )

    assert (supervisor.returncode, supervisor.stdout) == (0, b"%d\n" % dies_at)


SERVES = """
import os, sys
from harness_actors.tools.supervision.descendants import become_subreaper
from harness_actors.tools.supervision.supervisor import Supervisor

os.dup2(int(sys.argv[1]), 3)
os.dup2(os.pidfd_open(os.getppid()), 4)
become_subreaper()
Supervisor(b"", b"").run()
"""


def test_a_command_holds_no_output_of_another_open() -> None:
    # All requests are read in one piece, so that keepers are made while outputs wait.
    ours, theirs = socket.socketpair()
    programs = [[b"/bin/true"], [b"/bin/sleep", b"300"], [b"/bin/true"]]
    data = b"".join(
        framed(("start", number, 20, program, {}, None))
        for number, program in enumerate(programs, 1)
    )
    pipes = [os.pipe() for _ in programs]
    socket.send_fds(ours, [data], [writable for _, writable in pipes])
    for _, writable in pipes:
        os.close(writable)
    arguments = [sys.executable, "-c", SERVES, str(theirs.fileno())]
    supervisor = subprocess.Popen(arguments, pass_fds=[theirs.fileno()])
    try:
        theirs.close()
        outputs = [readable for readable, _ in pipes]
        ended, _, _ = select.select(outputs[2:], [], [], 30)
        assert ended == outputs[2:], "the second command goes on, and has this one's output"
        assert os.read(outputs[2], 1) == b""
        assert select.select(outputs[1:2], [], [], 0)[0] == [], "it goes on"
    finally:
        ours.close()
        supervisor.wait(60)
        for readable, _ in pipes:
            os.close(readable)


async def test_a_host_that_is_closed_ends_what_it_started(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    await call(run_command, command=f"{ALONE} {ESCAPED}")
    pids = await pids_in(workspace / "pids", 2)
    supervisor = supervisor_of(processes)
    processes.close()
    assert gone_within([*pids, supervisor], 1)
    with pytest.raises(ToolError, match="host of this agent was closed"):
        await call(run_command, command="true")


async def test_a_fork_of_a_host_keeps_nothing_of_it_alive(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    await call(run_command, command=f"{ALONE} {ESCAPED}")
    pids = await pids_in(workspace / "pids", 2)
    supervisor = supervisor_of(processes)
    # It has the host's end of the channel open, too, as a worker process of a tool has.
    fork = os.fork()
    if fork == 0:
        signal.pause()
        os._exit(0)
    try:
        processes.close()
        assert gone_within([*pids, supervisor], 5)
    finally:
        os.kill(fork, signal.SIGKILL)
        os.waitpid(fork, 0)  # noqa: ASYNC222 - it is dead


# --- the supervisor dies


async def test_a_killed_supervisor_fails_its_calls_and_is_replaced(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    await call(run_command, command=DAEMON)
    running = asyncio.ensure_future(call(run_command, command=f"echo so far; {ALL}"))
    pids = await pids_in(workspace / "pids", 6)
    os.kill(supervisor_of(processes), signal.SIGKILL)
    with pytest.raises(ToolError, match=r"(?s)supervises the commands.*was killed.*so far"):
        await running
    assert gone_within(pids, 1)
    assert await call(run_command, command="echo again") == "exit code: 0\nagain"


async def test_a_killed_supervisor_loses_no_command_that_was_over(
    processes: SupervisedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[set[str]] = []

    async def end_carriers(name: str, values: set[str]) -> int:
        swept.append(values)
        return 0

    def started(*program: str) -> client.SupervisedProcess:
        output = os.open(os.devnull, os.O_WRONLY)
        try:
            return processes.start(program, environment={}, output=output, run_id="run-1")
        finally:
            os.close(output)

    monkeypatch.setattr(client, "end_carriers", end_carriers)
    over = [started("/bin/true"), started("/nowhere")]
    await until(lambda: all(process.is_gone for process in over))
    running = started("/bin/sleep", "60")
    os.kill(supervisor_of(processes), signal.SIGKILL)
    await running.wait()

    assert [process.stopped for process in over] == ["", ""]
    await until(lambda: bool(swept))
    assert swept == [{running.mark}], "it is kept in memory, too"


async def test_a_killed_supervisor_leaves_no_output_open(
    call: Call, processes: SupervisedProcesses
) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    await call(run_command, command="true")
    supervisor, before = supervisor_of(processes), open_files()
    os.kill(supervisor, signal.SIGSTOP)
    # More than the channel holds, so that most wait here with their outputs.
    command = f": {'x' * 100_000}"
    running = [asyncio.ensure_future(call(run_command, command=command)) for _ in range(20)]
    await until(lambda: open_files() >= before + 30)
    os.kill(supervisor, signal.SIGKILL)
    ended = await asyncio.gather(*running, return_exceptions=True)
    assert all(isinstance(error, ToolError) for error in ended)
    await until(lambda: open_files() <= before)


async def test_a_supervisor_that_is_stopped_is_killed_and_replaced(
    call: Call, workspace: Path, processes: SupervisedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_WITHIN_S", 0.3)
    running = asyncio.ensure_future(call(run_command, command=ALL, timeout_s=60))
    pids = await pids_in(workspace / "pids", 5)
    os.kill(supervisor_of(processes), signal.SIGSTOP)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone_within(pids, 1)
    assert await call(run_command, command="echo again") == "exit code: 0\nagain"


async def test_how_a_command_ended_stays_whatever_becomes_of_its_keeper_after_that() -> None:
    link: Any = None
    process = client.SupervisedProcess(1, link, "mark", "run")
    process.hear("exited", 3)
    process.hear("lost")
    assert await process.wait() == 3
    assert process.stopped == client.KEEPER_KILLED


async def test_a_command_that_kills_its_keeper_fails_alone(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    neighbour = asyncio.ensure_future(
        call(run_command, command="until [ -e go ]; do sleep 0.01; done; echo ok")
    )
    wait = "until [ $(cat pids 2>/dev/null | wc -l) = 1 ]; do sleep 0.01; done;"
    with pytest.raises(ToolError, match="the process that watched it was killed"):
        await call(run_command, command=f"{ESCAPED} {wait} kill -KILL $PPID; sleep 300")
    assert gone_within(await pids_in(workspace / "pids", 1), 1)
    (workspace / "go").touch()
    assert await neighbour == "exit code: 0\nok"


async def test_a_command_that_cannot_be_started_fails_alone_and_its_supervisor_stays(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    supervisor = supervisor_of(processes)
    neighbour = asyncio.ensure_future(
        call(run_command, command="until [ -e go ]; do sleep 0.01; done; echo ok")
    )
    # More than the kernel takes in one piece.
    with pytest.raises(ToolError, match="Argument list too long"):
        await call(run_command, command=f": {'x' * 200_000}")
    assert supervisor_of(processes) == supervisor
    (workspace / "go").touch()
    assert await neighbour == "exit code: 0\nok"


def test_a_command_that_was_stopped_says_why_also_where_its_keeper_is_lost_after_that() -> None:
    process = client.SupervisedProcess(1, cast(Any, "no link"), "mark", "run-1")
    process.hear("overrun", 512)
    process.hear("lost")
    assert process.stopped == "it had more than 512 processes at once"


async def test_the_end_of_a_command_whose_keeper_was_lost_is_that_of_all_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[tuple[str, set[str]]] = []

    async def end_carriers(name: str, values: set[str]) -> int:
        ended.append((name, values))
        return 2

    class Link:
        def end(self, process: client.SupervisedProcess) -> None:
            process.hear("lost")

    monkeypatch.setattr(client, "end_carriers", end_carriers)
    process = client.SupervisedProcess(1, cast(Any, Link()), "its mark", "run-1")
    assert await process.end() == 2
    assert ended == [(COMMAND_VARIABLE, {"its mark"})]


async def test_a_keeper_that_is_killed_before_it_has_a_command_is_made_up_for(
    call: Call, processes: SupervisedProcesses
) -> None:
    await call(run_command, command="true")
    supervisor = supervisor_of(processes)
    await until(lambda: len(children(supervisor)) == 1)
    (spare,) = children(supervisor)
    os.kill(spare, signal.SIGKILL)
    await until(lambda: read_process(spare) is None)
    assert await call(run_command, command="echo on") == "exit code: 0\non"


async def test_a_command_that_stops_its_keeper_ends_in_time(call: Call, workspace: Path) -> None:
    with pytest.raises(ToolError, match=r"ran past 0\.5 s"):
        await call(run_command, command=f"{ESCAPED} kill -STOP $PPID; sleep 300", timeout_s=0.5)
    assert gone_within(await pids_in(workspace / "pids", 1), 1)


async def test_a_keeper_that_a_debugger_holds_is_killed_and_its_command_ends_alone(
    call: Call, workspace: Path
) -> None:
    waits = "until [ -e go ]; do sleep 0.01; done; echo ok"
    neighbour = asyncio.ensure_future(call(run_command, command=waits))
    held = f"echo $PPID > keeper; {ESCAPED} sleep 300"
    running = asyncio.ensure_future(call(run_command, command=held))
    (keeper,) = await pids_in(workspace / "keeper", 1)
    pids = await pids_in(workspace / "pids", 1)
    # Unlike one that is only stopped, it does not go on when it is told to.
    if ctypes.CDLL(None).ptrace(PTRACE_ATTACH, keeper, None, None):
        pytest.skip("this machine has no debuggers")
    try:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gone_within(pids, 1)
        (workspace / "go").touch()
        assert await neighbour == "exit code: 0\nok"
    finally:
        os.kill(keeper, signal.SIGKILL)
        while not os.WIFSIGNALED(os.waitpid(keeper, 0)[1]):  # noqa: ASYNC222 - it dies
            pass


async def test_a_command_is_started_though_the_keeper_that_was_ready_for_it_was_killed(
    call: Call, processes: SupervisedProcesses
) -> None:
    await call(run_command, command="true")
    supervisor = supervisor_of(processes)
    await until(lambda: len(children(supervisor)) == 1)
    (ready,) = children(supervisor)
    os.kill(ready, signal.SIGKILL)
    await until(lambda: ready not in children(supervisor))

    assert await call(run_command, command="echo ok") == "exit code: 0\nok"


async def its_keeper(processes: SupervisedProcesses, folder: Path) -> tuple[ToolProcess, int]:
    """A command that does nothing, and the keeper that has it."""
    program = ["/bin/sh", "-c", f"echo $PPID > {folder}/keeper; sleep 300"]
    output = os.open(os.devnull, os.O_WRONLY)
    try:
        process = processes.start(program, environment={}, output=output, run_id="run-1")
    finally:
        os.close(output)
    return process, (await pids_in(folder / "keeper", 1))[0]


async def test_a_keeper_that_is_stopped_is_woken_to_end_its_command_in_order(
    processes: SupervisedProcesses, tmp_path: Path
) -> None:
    process, keeper = await its_keeper(processes, tmp_path)
    os.kill(keeper, signal.SIGSTOP)

    assert await process.end() > 0
    assert process.stopped == "", "it was killed, and what it had was lost sight of"


def test_a_command_that_is_to_end_has_the_time_of_the_first_word_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen(["sleep", "60"]) as keeper:
        kept = Kept(keeper.pid, cast(Any, ours))
        kept.command = 7
        # Without its channel and its loop, of which this needs nothing.
        supervisor = Supervisor.__new__(Supervisor)
        supervisor._keepers = {ours.fileno(): kept}
        supervisor._do("end", 7)
        first = kept.kill_at
        time.sleep(0.01)
        supervisor._do("end", 7)
        assert kept.kill_at == first is not None
        assert theirs.recv(10) == b"e", "and it is told once"
        keeper.kill()


async def test_a_channel_that_was_full_is_left_in_peace_when_all_is_sent(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    launched = Launched(pid=os.getpid(), process=None, channel=ours, is_child=False)
    link = client._Link(launched, lambda _: None)
    loop = link._loop = asyncio.get_running_loop()
    with theirs:
        left = 4 << 20
        link._send(Outgoing(bytes(left), None))
        assert link._outgoing, "it does not take all of it at once"
        while left:
            left -= len(await asyncio.to_thread(theirs.recv, 1 << 16))
        await until(lambda: not link._outgoing)
        assert not loop.remove_writer(ours)
        link.close()


def test_a_keeper_that_works_slowly_is_not_killed() -> None:
    control, theirs = socket.socketpair()
    with control, theirs, subprocess.Popen(["sleep", "300"]) as keeper:
        kept = Kept(keeper.pid, cast(Any, control))
        kept.kill_at = time.monotonic() - 60
        supervisor = Supervisor.__new__(Supervisor)
        supervisor._keepers = {0: kept}
        supervisor._kill_late_keepers()
        assert keeper.poll() is None, "all of its command would be lost sight of"

        os.kill(keeper.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, keeper.pid, os.WSTOPPED | os.WNOWAIT)
        supervisor._kill_late_keepers()


def test_those_that_were_killed_are_counted_over_all_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One is slow to die, and one was forked while the others were killed.
    looks = iter([{11, 12}, {12, 13}])
    monkeypatch.setattr(keepers, "kill_below", lambda: next(looks))
    keeper = keepers.Keeper.__new__(keepers.Keeper)
    keeper._killed, keeper._pause_s = set(), 0.01
    keeper._kill()
    keeper._kill()
    assert keeper._killed == {11, 12, 13}


def test_what_a_killed_keeper_leaves_is_killed_until_none_of_it_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Those who fork are not all seen at once.
    looks = iter([{11}, {12}, set()])
    monkeypatch.setattr(supervisors, "kill_below", lambda spared: next(looks))
    # Without its channel, of which this needs nothing.
    supervisor = Supervisor.__new__(Supervisor)
    supervisor._keepers, supervisor._wake = {}, -1
    supervisor._poll = supervisor._death = select.poll()
    supervisor._strays = True
    while supervisor._strays:
        assert supervisor._serve()
    assert next(looks, None) is None


async def test_a_keeper_that_is_stopped_again_and_again_is_killed_and_not_its_supervisor(
    processes: SupervisedProcesses, tmp_path: Path
) -> None:
    supervisor = supervisor_of(processes)
    process, keeper = await its_keeper(processes, tmp_path)
    ended = threading.Event()

    def stop_it() -> None:
        with suppress(ProcessLookupError):
            while not ended.is_set():
                os.kill(keeper, signal.SIGSTOP)

    stopping = threading.Thread(target=stop_it)
    stopping.start()
    await process.end()
    ended.set()
    await asyncio.to_thread(stopping.join)

    assert gone_within([keeper], 1)
    assert supervisor_of(processes) == supervisor


async def test_what_supervisor_and_keeper_leave_when_both_are_killed_is_found_and_ended(
    processes: SupervisedProcesses, tmp_path: Path
) -> None:
    supervisor = supervisor_of(processes)
    process, keeper = await its_keeper(processes, tmp_path)
    (command,) = children(keeper)
    # So that it cannot end what the keeper leaves.
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    await process.wait()

    await until(lambda: alive([command]) == [])


async def test_a_command_that_kills_all_above_it_is_not_said_to_be_gone_with_all_it_started(
    call: Call, workspace: Path, processes: SupervisedProcesses
) -> None:
    supervisor = supervisor_of(processes)
    wait = "until [ $(cat pids 2>/dev/null | wc -l) = 1 ]; do sleep 0.01; done;"
    kill = f"kill -STOP {supervisor}; kill -KILL $PPID; kill -KILL {supervisor}; sleep 300"
    try:
        with pytest.raises(ToolError, match="killed with what could be found of all that it"):
            await call(run_command, command=f"{ESCAPED} {wait} {kill}")
    finally:
        for pid in alive(numbers(workspace / "pids")):
            os.kill(pid, signal.SIGKILL)


# --- its run and its call end


async def test_what_is_in_the_background_outlives_its_call_but_not_its_run(
    call: Call, context: ToolContext, workspace: Path, processes: SupervisedProcesses
) -> None:
    await call(run_command, command=f"{ALONE} {ESCAPED}")
    mine = await pids_in(workspace / "pids", 2)
    other = replace(context, run_id="run-2")
    await run_command.run('{"command": "sleep 300 >/dev/null 2>&1 & echo $! > other"}', other)
    (theirs,) = await pids_in(workspace / "other", 1)
    await call(run_command, command="true")
    assert alive(mine) == mine

    processes.end_run("run-1")
    assert gone_within(mine, 1)
    assert alive([theirs]) == [theirs]
    # As after a run that was parked and goes on.
    assert await call(run_command, command="echo again") == "exit code: 0\nagain"


async def test_nothing_escapes_from_a_call_that_ran_past_its_time(
    call: Call, workspace: Path
) -> None:
    with pytest.raises(ToolError, match="ran past 1 s"):
        await call(run_command, command=ALL, timeout_s=1)
    assert alive(await pids_in(workspace / "pids", 5)) == []


async def test_a_call_that_is_cancelled_as_it_starts_leaves_nothing(
    call: Call, processes: SupervisedProcesses, workspace: Path
) -> None:
    supervisor = supervisor_of(processes)
    await call(run_command, command="true")
    running = asyncio.ensure_future(call(run_command, command=ALL))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: [*map(children, children(supervisor))] == [[]])


# --- its bounds


@pytest.fixture
async def narrow() -> AsyncIterator[SupervisedProcesses]:
    processes = SupervisedProcesses(most=20)
    yield processes
    processes.close()


@pytest.mark.parametrize("start", ["sleep 300 &", "(setsid env -i sleep 300 &)"])
async def test_a_command_that_starts_too_many_processes_fails_alone(
    start: str, context: ToolContext, narrow: SupervisedProcesses, workspace: Path
) -> None:
    here = replace(context, processes=narrow)
    waits = "until [ -e go ]; do sleep 0.01; done; echo ok"
    neighbour = asyncio.ensure_future(run_command.run(f'{{"command": "{waits}"}}', here))
    bomb = f"echo first; for i in $(seq 30); do {start} done; sleep 300"
    with pytest.raises(ToolError, match=r"(?s)it had more than 20 processes at once.*first"):
        await run_command.run(f'{{"command": "{bomb}"}}', here)
    # What is left is the neighbour's.
    await until(lambda: sum(1 for _ in below(supervisor_of(narrow))) <= 5)
    (workspace / "go").touch()
    assert await neighbour == "exit code: 0\nok"


async def test_a_keeper_goes_first_from_the_beginning_and_its_command_does_not(call: Call) -> None:
    look = (
        "import os, time; keeper, until = os.getppid(), time.monotonic() + 10\n"
        "while not os.sched_getscheduler(keeper) and time.monotonic() < until: time.sleep(0.001)\n"
        "print(os.sched_getscheduler(keeper), os.sched_getscheduler(0), os.nice(0))"
    )
    if (first := how_the_first_are_scheduled()) == os.SCHED_OTHER:
        pytest.skip("this user may let nobody go first")

    shown = await call(run_command, command=shlex.join([sys.executable, "-c", look]))

    # Behind those who carry messages.
    behind = min(19, os.nice(0) + 10)
    assert shown == f"exit code: 0\n{first} {os.SCHED_OTHER} {behind}"


def how_the_first_are_scheduled() -> int:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as one:
        go_first(one.pid)
        return os.sched_getscheduler(one.pid)


async def test_a_tree_of_a_thousand_processes_is_ended_and_the_next_command_runs(
    call: Call, processes: SupervisedProcesses
) -> None:
    # 1,023 at most, whoever ends it or not.
    tree = "f() { [ $1 = 0 ] && exec sleep 300; f $(($1 - 1)) & f $(($1 - 1)) & wait; }; f 9"
    with pytest.raises(ToolError, match="it had more than 512 processes at once"):
        await call(run_command, command=tree, timeout_s=60)
    # Its keeper and the one for the next command.
    assert sum(1 for _ in below(supervisor_of(processes))) <= 2, "it is said to be gone"
    assert await call(run_command, command="echo ok") == "exit code: 0\nok"


class Overrun:
    """A command that had too many processes, as of those who start them; some still die."""

    stopped = "it had more than 512 processes at once"
    is_gone = False

    def start(self, *_: object, **__: object) -> "Overrun":
        return self

    async def wait(self) -> int:
        return -signal.SIGKILL

    async def end(self) -> int:
        self.is_gone = True
        return 513


async def test_a_command_that_was_stopped_is_waited_for_until_nothing_of_it_is_left(
    workspace: Path,
) -> None:
    command = Overrun()
    result = await run_shell(
        "bomb",
        folder=workspace,
        environment={},
        timeout_s=60,
        leave_background=True,
        processes=cast(Any, command),
    )
    assert (command.is_gone, result.killed) == (True, 513)


async def test_processes_up_to_the_bound_are_left_alone(
    context: ToolContext, narrow: SupervisedProcesses
) -> None:
    command = '{"command": "for i in $(seq 15); do sleep 0.4 & done; wait; echo ok"}'
    shown = await run_command.run(command, replace(context, processes=narrow))
    assert shown == "exit code: 0\nok"


def test_a_command_is_counted_often_where_the_number_of_its_processes_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[int] = []
    pauses: list[float] = []
    control, ours = socket.socketpair()
    with control, ours:
        monkeypatch.setattr(keepers, "woken_by_children", control.fileno)
        monkeypatch.setattr(keepers, "count_below", lambda *_: len(counted))
        kept = keepers.Keeper(control)
        kept._most = 20
        monkeypatch.setattr(kept, "_wait", pauses.append)
        for number in (1, 1, 1, 2, 3):
            counted[:] = range(number)
            kept._measure()
            kept._pause_s = pauses[-1]
    first = keepers.FIRST_COUNT_S
    assert pauses == pytest.approx([first, 1.5 * first, 2.25 * first, first, first])


async def test_many_commands_at_once_leave_no_process_and_no_open_file(
    call: Call, processes: SupervisedProcesses
) -> None:
    await call(run_command, command="true")
    supervisor = supervisor_of(processes)
    await until(lambda: len(children(supervisor)) == 1)
    places = [f"/proc/{supervisor}/fd", "/proc/self/fd"]
    before = [len(os.listdir(place)) for place in places]

    commands = (call(run_command, command=f"echo {number}") for number in range(60))
    shown = await asyncio.gather(*commands)

    assert shown == [f"exit code: 0\n{number}" for number in range(60)]
    # The one that is ready for the next command.
    await until(lambda: len(children(supervisor)) == 1)
    await until(lambda: [len(os.listdir(place)) for place in places] == before)


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_a_keeper_that_is_done_before_its_supervisor_goes_on_has_begun(size: int) -> None:
    ours, theirs = socket.socketpair()

    class Control:
        """The keeper reads what is sent at once; when it has all, it is done, and gone."""

        read = 0

        def sendmsg(self, data: list[bytes], handles: list[Any]) -> int:
            sent = ours.sendmsg([data[0][: 1 << 16]], handles)
            self._read(sent)
            return sent

        def sendall(self, data: bytes) -> None:
            for at in range(0, max(1, len(data)), 1 << 16):
                ours.sendall(data[at : at + (1 << 16)])
                self._read(len(data[at : at + (1 << 16)]))

        def _read(self, count: int) -> None:
            while count:
                data, handles, _, _ = socket.recv_fds(theirs, count, 1)
                count, self.read = count - len(data), self.read + len(data)
                for handle in handles:
                    os.close(handle)
            if self.read == size:
                theirs.close()

    with ours, open(os.devnull, "wb") as output:
        # Whoever sees it fail would have the command run by another one, too.
        Kept(1, cast("Any", Control())).hand_over(b"x" * size, output.fileno())


async def test_a_command_finds_no_key_above_it(
    call: Call, processes: SupervisedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a secret")
    shown = await call(run_command, command="env; cat /proc/$PPID/environ")
    assert "PATH=" in shown
    assert "a secret" not in shown
    assert b"a secret" not in environment_of(supervisor_of(processes))


async def test_requests_larger_than_the_channel_arrive_whole(call: Call) -> None:
    # Together some megabytes, of which the channel holds a part.
    texts = [chr(ord("a") + number) * 100_000 for number in range(20)]
    calls = (call(run_command, command=f": {text}; echo {text[0]}") for text in texts)
    shown = await asyncio.gather(*calls)
    assert shown == [f"exit code: 0\n{text[0]}" for text in texts]
