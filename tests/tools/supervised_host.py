"""A process that hosts a supervisor, for tests that kill it.

It runs each command that it is given in the current folder, and prints the pid of its
supervisor first. With ``--own`` it has itself for an actor: what it starts past its
supervisor dies with it, too.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from harness_actors.tools.shell import run_shell
from harness_actors.tools.supervision.client import SupervisedProcesses
from harness_actors.tools.supervision.launch import ACTOR_VARIABLE

SLEEP = "echo $$ >> pids; exec sleep 300"


def start_past_the_supervisor() -> None:
    """What tools of a user do: a program in a session of its own, and a fork."""
    subprocess.Popen(["sh", "-c", SLEEP], start_new_session=True)
    if os.fork() == 0:
        with open("pids", "a") as file:
            file.write(f"{os.getpid()}\n")
        signal.pause()


async def host(commands: list[str], *, own: bool) -> None:
    processes = SupervisedProcesses(mark="the test's" if own else "", detached=own)
    supervisor = processes.supervisor()
    assert supervisor is not None
    print(supervisor.pid, flush=True)
    if own:
        start_past_the_supervisor()
    for line in sys.stdin if not commands else ():
        commands.append(line)
    runs = [
        run_shell(
            command,
            folder=Path.cwd(),
            environment={"PATH": "/usr/bin:/bin"},
            timeout_s=300,
            processes=processes,
        )
        for command in commands
    ]
    print("asked", flush=True)
    await asyncio.gather(*runs)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if own := "--own" in arguments:
        arguments.remove("--own")
        os.environ[ACTOR_VARIABLE] = "the test's"
    asyncio.run(host(arguments, own=own))
