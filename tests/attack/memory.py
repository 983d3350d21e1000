"""How much memory each process of ours has taken at most."""

import os
import re
import resource
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from harness_actors.tools.processes import Process, carries, list_processes

LOOK_EACH_S = 0.1


class MemoryWatch:
    """Watches processes that carry a mark, and all below them, while it is entered.

    What a run's commands start is not watched: only what belongs to the harness and to Ray.

    Args:
        mark: Environment variables of the processes.
    """

    def __init__(self, mark: Mapping[str, str]) -> None:
        self._mark = mark
        self._ours: dict[tuple[int, int], bool] = {}
        self._peaks: dict[tuple[int, int], tuple[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def peaks_mb(self) -> dict[str, float]:
        """The most that a process of a role took, in MB; the kernel keeps count of it."""
        peaks: dict[str, float] = {}
        for role, peak_mb in self._peaks.values():
            peaks[role] = max(peaks.get(role, 0.0), peak_mb)
        return peaks

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EACH_S):
            processes = list_processes()
            for process in processes.values():
                if self._is_ours(process, processes):
                    with suppress(OSError):
                        self._look(process)

    def _is_ours(self, process: Process, processes: Mapping[int, Process]) -> bool:
        known = (process.pid, process.started)
        if known not in self._ours:
            parent = processes.get(process.parent)
            self._ours[known] = process.pid != os.getpid() and (
                carries(process.pid, self._mark)
                or (parent is not None and self._is_ours(parent, processes))
            )
        return self._ours[known]

    def _look(self, process: Process) -> None:
        role = _role(process.pid)
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        if role and found:
            self._peaks[process.pid, process.started] = role, int(found[1]) / 1024


def _role(pid: int) -> str:
    """What a process is; empty for one that a command of a run started."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    line = " ".join(words)
    if line.startswith("ray::"):
        # After the dot is what it does just now.
        return words[0].partition(".")[0].split()[0]
    if found := re.search(r"harness_actors[/.]?([\w/.]*)", line):
        return f"harness_actors {found[1]}".strip()
    return Path(words[0]).name if "ray" in line else ""


def peak_of_this_process_mb() -> float:
    """The most memory that this process has taken so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
