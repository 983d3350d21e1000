"""The command under fire: a `harness batch` in a process of its own, found out by its processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from harness_actors.actors.processes import is_alive
from harness_actors.errors import StoreError
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader
from harness_actors.tools.processes import carries, end_processes, list_processes
from tests.chaos.plans import RunPlan

HERE = Path(__file__).parent
MARK = "CHAOS_BATCH"
"""Variable that all processes of one batch carry: the driver, its Ray, and what they start."""


class BatchCommand:
    """A folder with tasks, and the command that works on them, the same each time.

    Args:
        folder: Where everything goes.
        base_url: The model's server.
        plans: What its runs do; they log to ``tools.log`` in the folder.
        at_once: How many of them at once.
        run_dir: The run directory; None puts it into the folder.
        address: Which Ray; None: in the process of the command alone.
        variables: More environment variables of the command.
    """

    def __init__(
        self,
        folder: Path,
        base_url: str,
        plans: Sequence[RunPlan],
        *,
        at_once: int,
        run_dir: Path | None = None,
        address: str | None = "local",
        agent: str = "agent.yaml",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.run_dir = run_dir or folder / "run"
        self.plans = {plan.name: plan for plan in plans}
        self.said_path = folder / "said.txt"
        self.tool_log = folder / "tools.log"
        self.mark = {MARK: uuid4().hex}
        tasks = folder / "tasks.jsonl"
        tasks.write_text("".join(json.dumps(plan.as_task()) + "\n" for plan in plans))
        self._command = [
            *(sys.executable, "-m", "harness_actors", "batch", str(tasks)),
            *("--run-dir", str(self.run_dir), "--agent", str(HERE / agent)),
            *("--model-base-url", base_url, "-n", str(at_once)),
            # Patient runs take as many as it takes.
            *("--max-turns", "1000"),
            *(("--address", address) if address else ("--runtime", "local")),
        ]
        self.variables = dict(variables or {})
        """More environment variables of whoever works with its Ray, but for its own mark."""
        self._variables = {**os.environ, **self.variables, **self.mark}
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def results_path(self) -> Path:
        return self.run_dir / "results.jsonl"

    @property
    def store(self) -> Path:
        return self.run_dir / "runs.db"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def start(self, **variables: str) -> None:
        """Start it. All its processes get the variables."""
        self.starts += 1
        with self.said_path.open("ab") as said:
            said.write(f"--- start {self.starts}\n".encode())
            said.flush()
            self._process = subprocess.Popen(
                self._command, stdout=said, stderr=said, env={**self._variables, **variables}
            )

    def interrupt(self) -> None:
        """Press Ctrl-C once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL the command's own process."""
        assert self._process is not None
        self._process.kill()

    async def ended(self, count: int, *, within_s: float) -> None:
        """Return when so many tasks have their line in the results.

        Raises:
            TimeoutError: They do not come.
        """
        async with asyncio.timeout(within_s):
            while not self.has_ended:
                path = self.results_path
                if path.exists() and path.read_bytes().count(b"\n") >= count:
                    return
                await asyncio.sleep(0.02)
        raise AssertionError(f"the command ended before {count} tasks had: {self.said()}")

    async def finish(self, *, within_s: float) -> int:
        """Wait for it to end; returns its exit status.

        Raises:
            TimeoutError: It did not end.
        """
        assert self._process is not None
        process = self._process
        async with asyncio.timeout(within_s):
            # Not `wait` in a thread: one that never returns would keep this process alive.
            while process.poll() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return process.returncode

    def said(self, *, newest: bool = True) -> str:
        """What it printed, of the newest start or of all."""
        text = self.said_path.read_text(errors="replace") if self.said_path.exists() else ""
        return text.rpartition("--- start ")[2].partition("\n")[2] if newest else text

    def living(self) -> list[ProcessMark]:
        """The living processes of its cell as the journal knows them, the oldest first."""
        try:
            marks = JournalReader(self.store).load_processes()
        except StoreError:
            # Not made yet.
            return []
        return [mark for mark in marks if is_alive(mark)]

    def others(self) -> list[int]:
        """All processes that it started, those of its Ray included; not itself."""
        pids = [pid for pid in list_processes() if pid not in (self.pid, os.getpid())]
        return [pid for pid in pids if carries(pid, self.mark)]

    async def clean_up(self) -> None:
        """Kill all that is left."""
        await end_processes(self.mark)
        if self._process is not None:
            self._process.wait()
