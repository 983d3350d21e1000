"""Tools of each sort that log when a call begins and ends. Found beside agent.yaml."""

import asyncio
import ctypes
import os
import signal
import time
from pathlib import Path

from harness_actors.ports import ToolContext
from harness_actors.tools import tool
from harness_actors.tools.shell import run_shell

GROUP_VARIABLE = "CHAOS_SMALL_MEMORY"
"""Names the folder of a control group with little memory."""
LIMIT_FILES = ("memory.max", "memory.limit_in_bytes")
"""What bounds such a group: of the second version, and of the first."""
ALLOWED_BYTES = 100 * 2**20
MOST_BYTES = 2**30
"""More is never taken, whatever the bound does."""
CHUNK_BYTES = 8 * 2**20


def write_line(log: str, word: str, sort: str, run: str, context: ToolContext) -> None:
    """One line, in one write: lines of many processes do not mix."""
    # The clock of the machine, the same in all its processes, shells included.
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    line = f"{now:.6f} {word} {sort} {run} {context.run_id} {context.call_id}"
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{line} {os.getpid()}\n".encode())
    finally:
        os.close(handle)


# Each call is to leave its lines, whatever was called before.
@tool(effect="read_only", volatile=True)
def look(log: str, run: str, seconds: float, bulk: int, step: int, context: ToolContext) -> str:
    """Change nothing. Blocks a thread.

    Args:
        log: Where its calls are logged.
        run: The task that it works for.
        seconds: How long it takes.
        bulk: Bytes of its result besides.
        step: How often the model had spoken before, which it knows by that.
    """
    write_line(log, "begin", "look", run, context)
    time.sleep(seconds)
    write_line(log, "end", "look", run, context)
    return f"looked in {os.getpid()} {os.urandom(bulk // 2).hex()}"


@tool(idempotent=True, volatile=True)
async def put(
    log: str, run: str, seconds: float, bulk: int, step: int, context: ToolContext
) -> str:
    """Change something that may be changed twice to the same.

    Args:
        log: Where its calls are logged.
        run: The task that it works for.
        seconds: How long it takes.
        bulk: Bytes of its result besides.
        step: How often the model had spoken before, which it knows by that.
    """
    write_line(log, "begin", "put", run, context)
    await asyncio.sleep(seconds)
    write_line(log, "end", "put", run, context)
    return f"put in {os.getpid()} {os.urandom(bulk // 2).hex()}"


@tool
async def note(
    log: str, run: str, seconds: float, bulk: int, step: int, context: ToolContext
) -> str:
    """Do something that must not be done twice.

    Args:
        log: Where its calls are logged.
        run: The task that it works for.
        seconds: How long it takes.
        bulk: Bytes of its result besides.
        step: How often the model had spoken before, which it knows by that.
    """
    write_line(log, "begin", "note", run, context)
    await asyncio.sleep(seconds)
    write_line(log, "end", "note", run, context)
    return f"noted in {os.getpid()} {os.urandom(bulk // 2).hex()}"


@tool
async def pay(
    log: str, run: str, seconds: float, what: str, context: ToolContext, by: str = ""
) -> str:
    """Do something that must not be done twice, and only when a person has approved of it.

    Args:
        log: Where its calls are logged.
        run: The task that it works for.
        seconds: How long it takes.
        what: What for, which no other call has.
        by: Who has changed that, if anybody.
    """
    write_line(log, "begin", "pay", run, context)
    await asyncio.sleep(seconds)
    write_line(log, "end", "pay", run, context)
    return f"paid in {os.getpid()} by {by or 'nobody else'}"


WORK = """
say() { read -r up _ < /proc/uptime; echo "$up $1 work $RUN $HARNESS_RUN $CALL $HOST" >> "$LOG"; }
say begin; sleep "$SECONDS_EACH"; say end
"""


@tool
async def work(
    log: str, run: str, seconds: float, bulk: int, step: int, context: ToolContext
) -> str:
    """Do something that must not be done twice, in a process of its own.

    Args:
        log: Where its calls are logged, with the process that has called it.
        run: The task that it works for.
        seconds: How long it takes.
        bulk: Bytes of its result besides.
        step: How often the model had spoken before, which it knows by that.
    """
    given = {"LOG": log, "RUN": run, "CALL": context.call_id, "HOST": str(os.getpid())}
    given |= {"SECONDS_EACH": str(seconds), "HARNESS_RUN": context.run_id, "WORK": WORK}
    result = await run_shell(
        # In a session of its own, as a daemon is: it must end with its host all the same.
        'setsid --wait bash -c "$WORK"',
        folder=Path("/"),
        environment={"PATH": os.defpath, **given, **context.environment},
        timeout_s=60,
        processes=context.processes,
        run_id=context.run_id,
    )
    return f"worked in {os.getpid()} with {result.exit_code} {os.urandom(bulk // 2).hex()}"


@tool
def crash(log: str, run: str, how: str, context: ToolContext) -> str:
    """End the process that runs it.

    Args:
        log: Where its calls are logged.
        run: The task that it works for.
        how: ``segfault``, or ``memory``: by the kernel, for taking too much of it.
    """
    write_line(log, "begin", "crash", run, context)
    if how == "segfault":
        ctypes.string_at(0)
    run_out_of_memory()
    return "not reached"


def run_out_of_memory() -> None:
    """Have the kernel kill this process; where it does not, do to it what the kernel would."""
    group = os.environ.get(GROUP_VARIABLE)
    if group and is_bounded_by(Path(group)):
        taken = []
        for _ in range(MOST_BYTES // CHUNK_BYTES):
            # Written to, for memory counts from then.
            taken.append(b"\1" * CHUNK_BYTES)
    os.kill(os.getpid(), signal.SIGKILL)


def is_bounded_by(group: Path) -> bool:
    """Join a control group; whether this process is in it then, and it has its bound."""
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        bounds = [(group / name).read_text() for name in LIMIT_FILES if (group / name).exists()]
        joined = Path("/proc/self/cgroup").read_text().splitlines()
        is_in = any(line.endswith(f"/{group.name}") for line in joined)
        return is_in and bool(bounds) and all(0 < int(bound) <= ALLOWED_BYTES for bound in bounds)
    except (OSError, ValueError):
        return False
