"""The harness in a notebook: a real kernel, driven as a notebook's server does it."""

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from harness_actors.tools.processes import carries, end_processes, list_processes
from tests.joining.rays import environment
from tests.joining.strangers import closed_port

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

CELL_WITHIN_S = 120.0
SETUP = """
import asyncio
from pathlib import Path
from harness_actors import AgentHarness, ChatAgent, HarnessResult
from harness_actors.events import RunEvent
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.tasks import note, replies

folder = Path({folder!r})

def script(messages):
    task = next(m for m in reversed(messages) if m.role == "user").text
    if replies(messages) == 0:
        seconds = 600 if task == "slow" else 0
        return Reply.call("note", {{"path": str(folder / "log"), "seconds": seconds}})
    return Reply.call("work_complete", {{"summary": f"done: {{task}}"}})

agent = ChatAgent(model=ScriptedModel(script), tools=[note])
harness = AgentHarness(agent, store=folder / "store.db")
"""
STREAM = """
run_ids = []
async for item in harness.run_stream({task!r}):
    if isinstance(item, HarnessResult):
        print(item.output_text)
    elif isinstance(item, RunEvent):
        run_ids.append(item.run_id)
        if type(item.event).__name__ == "ToolCalled":
            print("called", flush=True)
"""


@dataclass
class Cell:
    """What a cell showed.

    Attributes:
        printed: Its stdout.
        errors: Its stderr, which a notebook shows in red.
        value: The value of its last line.
        raised: Name and text of what it raised; None where it raised nothing.
    """

    printed: str = ""
    errors: str = ""
    value: str | None = None
    raised: tuple[str, str] | None = None


@dataclass
class Notebook:
    """A kernel and its client."""

    manager: KernelManager
    client: BlockingKernelClient
    variables: dict[str, str]
    log: Path
    cells: list[Cell] = field(default_factory=list)

    def run(self, code: str, *, interrupt_at: str | None = None) -> Cell:
        cell = Cell()
        self.cells.append(cell)
        waiting = interrupt_at

        def show(message: dict[str, Any]) -> None:
            nonlocal waiting
            content = message["content"]
            match message["msg_type"]:
                case "stream" if content["name"] == "stdout":
                    cell.printed += content["text"]
                case "stream":
                    cell.errors += content["text"]
                case "execute_result":
                    cell.value = content["data"]["text/plain"]
                case "error":
                    cell.raised = content["ename"], content["evalue"]
            if waiting is not None and waiting in cell.printed:
                waiting = None
                self.manager.interrupt_kernel()

        self.client.execute_interactive(code, timeout=CELL_WITHIN_S, output_hook=show)
        return cell

    def processes(self) -> int:
        """How many there are of it, the kernel's own included."""
        mark = {"RAY_TMPDIR": self.variables["RAY_TMPDIR"]}
        return sum(carries(pid, mark) for pid in list_processes())


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    # Short: the paths of Ray's sockets, which lie in it, must be.
    folder = Path(tempfile.mkdtemp(prefix="hj"))
    variables = environment(folder)
    log = folder / "kernel.log"
    # A Ray of this user has died before.
    (folder / "ray").mkdir()
    manager = KernelManager(kernel_name="python3", transport="ipc")
    spec = manager.kernel_spec
    assert spec is not None
    spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with closed_port() as address, log.open("w") as errors:
        (folder / "ray" / "ray_current_cluster").write_text(address)
        manager.start_kernel(env=variables, stdout=DEVNULL, stderr=errors)
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=CELL_WITHIN_S)
        yield Notebook(manager, client, variables, log)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    asyncio.run(end_processes({"RAY_TMPDIR": str(folder)}))
    shutil.rmtree(folder, ignore_errors=True)


def test_a_notebook_runs_streams_interrupts_and_restarts(notebook: Notebook) -> None:
    assert notebook.run(SETUP.format(folder=notebook.variables["RAY_TMPDIR"])).raised is None
    first = notebook.run("(await harness.run('one')).output_text")
    second = notebook.run("(await harness.run('two')).output_text")
    streamed = notebook.run(STREAM.format(task="three"))

    assert (first.raised, first.value) == (None, "'done: one'")
    assert (second.raised, second.value) == (None, "'done: two'")
    assert (streamed.raised, streamed.printed) == (None, "called\ncalled\ndone: three\n")

    interrupted = notebook.run(STREAM.format(task="slow"), interrupt_at="called")
    running = notebook.run("harness.is_running")
    resumed = notebook.run("(await harness.resume(run_ids[0])).output_text")

    assert interrupted.raised is not None
    assert interrupted.raised[0] in ("CancelledError", "KeyboardInterrupt")
    assert running.value == "False"
    assert (resumed.raised, resumed.value) == (None, "'done: slow'")

    nested = notebook.run("coroutine = harness.run('four')\nasyncio.run(coroutine)")
    assert nested.raised is not None
    assert "cannot be called from a running event loop" in nested.raised[1]
    assert notebook.run("await coroutine; (Path.home() / '.ray').exists()").value == "False"

    # Neither in a cell nor at the server's terminal does Ray say anything.
    assert [cell.errors for cell in notebook.cells] == [""] * len(notebook.cells)
    assert notebook.processes() > 3
    notebook.manager.restart_kernel()
    until = time.monotonic() + 60.0
    while notebook.processes() > 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert notebook.processes() == 1
    assert "ray" not in notebook.log.read_text().lower()
    assert "SIGTERM" not in notebook.log.read_text()
