"""A batch that holds more runs than its processes have sockets says so, and ends well."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_actors.testing.loopback_process import LoopbackProcess

# The limits of a process are its own, and the hard one is not raised again.
UNDER = """
import resource, sys
files = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 200), files))
from harness_actors.cli.app import app
app()
"""
PYTHON = """
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
from harness_actors import run_batch
from harness_actors.testing import an_agent

async def main():
    async for outcome in run_batch(["x"] * 200, an_agent(), concurrency=200, runtime="local"):
        assert outcome.ok

asyncio.run(main())
"""
TOLD = "200 runs at once, but only 150 calls of models: the limit of open files, 300, allows"


def batch_under(files: int, folder: Path, *flags: str) -> tuple[str, dict[str, Any]]:
    """Run 200 tasks under a limit of files: what is said, and what the server has counted."""
    tasks = "".join(json.dumps({"task": f"task {number}"}) + "\n" for number in range(200))
    (folder / "tasks.jsonl").write_text(tasks)
    with LoopbackProcess("harness_actors.testing.scripts:says_ok", latency_s=1.0) as server:
        command = [
            *(sys.executable, "-c", UNDER, str(files), "batch", str(folder / "tasks.jsonl")),
            *("--run-dir", str(folder / "run"), "--runtime", "local", "--model", "m"),
            *("--model-base-url", server.base_url, "--max-turns", "1", *flags),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        stats = server.stats()
    assert "Traceback" not in done.stderr
    assert stats["requests"] == 200, done.stdout + done.stderr
    return done.stdout + done.stderr, stats


def test_runs_without_a_socket_wait_for_one_and_it_is_told(tmp_path: Path) -> None:
    said, stats = batch_under(300, tmp_path, "-n", "200")

    assert TOLD in said
    assert "ulimit -n 400" in said
    assert stats["peak"] == 150


@pytest.mark.parametrize(("files", "at_once"), [(300, "100"), (600, "200"), (600, "5000")])
def test_nothing_is_told_where_there_is_room(files: int, at_once: str, tmp_path: Path) -> None:
    said, stats = batch_under(files, tmp_path, "-n", at_once)

    assert "runs at once" not in said
    assert stats["peak"] == min(200, int(at_once))


def test_a_batch_from_python_is_told_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PYTHON], capture_output=True, text=True, check=True
    )

    assert TOLD in done.stderr
