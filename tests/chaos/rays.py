"""A Ray that is started by hand, as a user does who wants one that outlives the commands."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from harness_actors.tools.processes import carries, end_processes, list_processes


class RayByHand:
    """A Ray for as long as it is entered; commands with `variables` join it."""

    async def __aenter__(self) -> Self:
        # Short: the paths of Ray's sockets, which lie in it, must be.
        self._folder = Path(tempfile.mkdtemp(prefix="hr"))
        self._port = "0"
        try:
            await asyncio.to_thread(self._start)
        except BaseException:
            await end_processes(self.variables)
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # At once: on SIGTERM it takes half a minute to take leave of its processes.
        await end_processes(self.variables)
        self._head.communicate(timeout=60)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def variables(self) -> dict[str, str]:
        return {"RAY_TMPDIR": str(self._folder)}

    def pids(self) -> list[int]:
        """Its processes, and the actors that live in it; not the commands that joined it."""
        return [pid for pid in list_processes() if carries(pid, {**self.variables, "BY_HAND": "1"})]

    async def start_again(self) -> None:
        """Start it after processes of it were killed, at the address that it had."""
        await end_processes({**self.variables, "BY_HAND": "1"})
        self._head.communicate(timeout=60)
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"]
        self._head = subprocess.Popen(
            [*command, f"--port={self._port}", "--include-dashboard=false", "--num-cpus=2"],
            env={**os.environ, **self.variables, "BY_HAND": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._head.stdout is not None
        said = []
        for line in self._head.stdout:
            said.append(line)
            if "will now block" in line:  # its address is noted by then
                noted = (self._folder / "ray" / "ray_current_cluster").read_text()
                self._port = noted.strip().rpartition(":")[2]
                return
        raise OSError(f"ray start ended: {''.join(said)}")
