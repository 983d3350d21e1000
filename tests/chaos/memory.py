"""A group of processes with little memory: the kernel kills one in it that takes more.

Only such a group is filled, never the machine. Where none can be made (its file system is
read-only, or not ours to write), a tool ends its process as the kernel would, with SIGKILL.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.logged_tools import ALLOWED_BYTES, GROUP_VARIABLE, LIMIT_FILES
from tests.chaos.logs import ToolLine, now

EMPTY_WITHIN_S = 10.0
V2, V1 = LIMIT_FILES
# What a process has taken before it joins is not counted. The first version bounds memory and
# swap together.
_SWAP = {V2: ("memory.swap.max", 0), V1: ("memory.memsw.limit_in_bytes", ALLOWED_BYTES)}
_KILLS = {V2: "memory.events", V1: "memory.oom_control"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeaths:
    """How the processes of a tool that takes too much memory ended.

    Attributes:
        by_kernel: Killed by the kernel, for lack of memory.
        by_signal: Killed as the kernel would, by themselves.
        problem: Why no group with little memory was to be had; empty where there was one.
    """

    by_kernel: int
    by_signal: int
    problem: str = ""

    def __str__(self) -> str:
        told = f"{self.by_kernel} out of memory by the kernel, {self.by_signal} by SIGKILL"
        return f"{told} ({self.problem})" if self.problem else told


class SmallMemory:
    """A group that was made, or the reason why there is none.

    Args:
        path: Its folder; None where none can be made.
        problem: Why.
    """

    def __init__(self, path: Path | None, problem: str = "") -> None:
        self.path = path
        self.problem = problem

    @property
    def variables(self) -> Mapping[str, str]:
        """What tells a tool of it."""
        return {} if self.path is None else {GROUP_VARIABLE: str(self.path)}

    @property
    def kills(self) -> int:
        """How many processes in it the kernel has killed."""
        if self.path is None:
            return 0
        text = (self.path / _KILLS[_limit_file(self.path)]).read_text()
        return _counts(text).get("oom_kill", 0)

    def deaths(self, lines: Sequence[ToolLine]) -> MemoryDeaths:
        """Of the calls that a log has of the tool that crashes."""
        crashes = sum(line.begins and line.sort == "crash" for line in lines)
        killed = self.kills
        return MemoryDeaths(by_kernel=killed, by_signal=crashes - killed, problem=self.problem)

    def remove(self) -> None:
        """Wait until it is empty, and remove it.

        Raises:
            OSError: A process is left in it.
        """
        if self.path is None:
            return
        deadline = now() + EMPTY_WITHIN_S
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:
                # What was killed takes a moment to be gone.
                if now() > deadline:
                    raise
                time.sleep(0.01)


@contextmanager
def small_memory() -> Iterator[SmallMemory]:
    """A group for processes that this one starts; removed after it, when they have ended."""
    group = _make()
    try:
        yield group
    finally:
        group.remove()


def _make() -> SmallMemory:
    problem = "this system has no control groups for memory"
    for parent in _parents():
        try:
            return SmallMemory(_made_in(parent))
        except OSError as error:
            problem = f"no control group in {parent}: {error.strerror or error}"
    return SmallMemory(None, problem)


def _made_in(parent: Path) -> Path:
    """A group in one that there is, with its bounds, which processes of ours can join.

    Raises:
        OSError: It cannot be made, bounded, or joined.
    """
    path = Path(tempfile.mkdtemp(prefix="chaos-", dir=parent))
    try:
        limit = _limit_file(path)
        (path / limit).write_text(str(ALLOWED_BYTES))
        swap, bound = _SWAP[limit]
        if (path / swap).exists():
            (path / swap).write_text(str(bound))
        if _counts((path / _KILLS[limit]).read_text()).get("oom_kill_disable"):
            raise OSError(0, "the kernel kills nothing there")
        _try_to_join(path)
    except OSError:
        SmallMemory(path).remove()
        raise
    return path


def _try_to_join(path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            (path / "cgroup.procs").write_text(str(process.pid))
        finally:
            process.kill()


def _limit_file(path: Path) -> str:
    found = next((name for name in LIMIT_FILES if (path / name).exists()), None)
    if found is None:
        raise OSError(0, "memory is not bounded there")
    return found


def _parents() -> Iterator[Path]:
    """Where a group may be made, the likeliest first.

    Source: cgroups(7), proc_pid_mountinfo(5).
    """
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, mounted = left.split()[3:5]
        kind, _, options = right.split()[:3]
        first = kind == "cgroup" and "memory" in options.split(",")
        if not first and kind != "cgroup2":
            continue
        # With the first version a group lies in that of this process, and its bounds with it.
        wanted = "memory" if first else ""
        path = next((path for _, names, path in own if wanted in names.split(",")), None)
        if path is None or not Path(path).is_relative_to(root):
            continue
        folder = Path(mounted) / Path(path).relative_to(root)
        if first:
            yield folder
            continue
        # With the second, one that has processes itself cannot bound memory below it.
        above = [folder, *folder.parents]
        inside = above[: above.index(Path(mounted)) + 1]
        yield from (one for one in inside if _gives_memory(one))


def _gives_memory(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _counts(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in (line.split() for line in text.splitlines())}
