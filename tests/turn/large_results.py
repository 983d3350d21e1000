"""How much memory a result of 200 MB takes; a program of its own, which prints it in MB."""

import asyncio
import sys
import threading
from pathlib import Path

from harness_actors.actors.host.shipped_executors import supervised_processes
from harness_actors.actors.host.tool_workers import tool_workers
from harness_actors.config import ArtifactsConfig
from harness_actors.ports import LargeResult, ToolContext, ToolWorkers
from harness_actors.stores.artifacts import ArtifactFolder
from harness_actors.tools import tool
from harness_actors.tools.command import run_command
from harness_actors.turn.artifacts import keep_large
from harness_actors.turn.outcomes import ToolExecutionResult

SIZE = 200_000_000
LOOK_EACH_S = 0.002


class Memory:
    """What this process has in memory while this is open, beyond what it had before."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._before = self._most = taken_bytes()
        self._watching = threading.Thread(target=self._watch)
        self._watching.start()

    def taken(self) -> int:
        """The most that it was, in bytes."""
        self._over.set()
        self._watching.join()
        return self._most - self._before

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EACH_S):
            self._most = max(self._most, taken_bytes())


def taken_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


async def command(context: ToolContext) -> str:
    arguments = '{"command": "head -c 200000000 /dev/zero | tr \\\\0 x", "timeout_s": 90}'
    return await run_command.run(arguments, context)


async def handed_over(context: ToolContext) -> str:
    assert context.workspace is not None
    file = (context.workspace / "made").open("w+b")
    for _ in range(SIZE // 1_000_000):
        file.write(b"x" * 1_000_000)
    return LargeResult("x", file)


@tool(worker=True)
def large() -> str:
    return "x" * SIZE


async def worker(context: ToolContext) -> str:
    return await large.run("{}", context)


async def text(_: ToolContext) -> str:
    return "x" * SIZE


MADE = {"command": command, "handed_over": handed_over, "worker": worker}


async def measure(kind: str, folder: Path) -> int:
    processes = supervised_processes(own_process=False)
    workers = tool_workers(processes)
    try:
        return await _measure(kind, folder, workers)
    finally:
        await workers.close()
        processes.close()


async def _measure(kind: str, folder: Path, workers: ToolWorkers) -> int:
    store = folder / "runs.db"
    store.touch()
    kept = ArtifactFolder(store).of("talk", ArtifactsConfig(cap_bytes=2 * SIZE))
    context = ToolContext(
        run_id="run",
        call_id="call",
        workspace=folder,
        in_thread=asyncio.to_thread,
        artifacts=kept,
        workers=workers,
    )
    made = await text(context) if kind == "text" else ""
    # The first use of a thread and of a process is no part of it.
    await run_command.run('{"command": "true"}', context)
    memory = Memory()
    if kind != "text":
        made = await MADE[kind](context)
    result = await keep_large(ToolExecutionResult(text=made), "tool", context)
    assert "has 200,0" in result.text, result.text[:500]
    return memory.taken()


if __name__ == "__main__":
    print(asyncio.run(measure(sys.argv[1], Path(sys.argv[2]))) // 1_000_000)
