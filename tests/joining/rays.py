"""A Ray with a token, started by hand, and the processes that join it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_actors.tools.processes import carries, end_processes, list_processes

RAY = str(Path(sys.executable).with_name("ray"))
TOKEN = "0123456789abcdef" * 4
END_WITHIN_S = 300.0


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """That of a user whose home is in a folder and who has set nothing of Ray's."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if name == "RAY_USE_UVLOOP" or not name.startswith("RAY_")
    }
    places = {"HOME": str(folder / "home"), "HARNESS_HOME": str(folder / "harness")}
    (folder / "home").mkdir(parents=True, exist_ok=True)
    # Cells that nobody uses any more leave soon, so that a test can wait for that.
    return {**ours, **places, "RAY_TMPDIR": str(folder), "HARNESS_CELL_IDLE_S": "3", **variables}


class RayByHand:
    """A Ray of two nodes on this machine that asks for a token.

    Attributes:
        folder: Where it keeps its files, of the shortness that Ray's sockets need.
        address: ``HOST:PORT``.
        token_path: The file of its token.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hj"))
        self.token_path = self.folder / "token"
        self.token_path.write_text(TOKEN)
        self._mark = {"JOINED_BY_HAND": str(self.folder)}
        self._started: list[subprocess.Popen[str]] = []
        try:
            self._start("--head", "--port=0", "--include-dashboard=false", "--num-cpus=1")
            self.address = (self.folder / "ray" / "ray_current_cluster").read_text().strip()
            self._start(f"--address={self.address}", "--num-cpus=1", '--resources={"second": 1}')
        except BaseException:
            self.close()
            raise

    def _start(self, *options: str) -> None:
        variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token_path)}
        process = subprocess.Popen(
            [RAY, "start", "--block", "--disable-usage-stats", *options],
            env=environment(self.folder, **variables, **self._mark),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            # After "runtime started", where its address is not noted yet.
            if "will now block" in line:
                return
        raise OSError(f"ray start ended: {''.join(said)}")

    def pid_of(self, name: str) -> int:
        """The process of the head that is called so."""
        found = [
            pid
            for pid in list_processes()
            if carries(pid, self._mark) and name in Path(f"/proc/{pid}/comm").read_text()
        ]
        return min(found)

    def close(self) -> None:
        # At once: on SIGTERM it takes half a minute to take leave of its processes.
        asyncio.run(end_processes(self._mark))
        for process in self._started:
            process.communicate(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_script(
    name: str, *arguments: str, variables: Mapping[str, str]
) -> "subprocess.Popen[str]":
    """Start a script of this folder as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.joining.{name}", *arguments],
        env=dict(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(script: "subprocess.Popen[str]") -> dict[str, Any]:
    """The JSON object that a script printed, and that was all that it said."""
    out, error = script.communicate(timeout=END_WITHIN_S)
    assert (error, script.returncode, out.count("\n")) == ("", 0, 1), out
    answer: dict[str, Any] = json.loads(out)
    return answer
