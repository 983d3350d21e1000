"""What the tools of the workload logged, and by which clock."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """A call that began or ended.

    Attributes:
        at: Seconds, as `now` tells them.
        begins: It began; otherwise it ended.
        sort: Name of the tool.
        task: The task that it worked for.
        run_id: Its run.
        call_id: The call.
        pid: The host that it ran in, or that started the process that it ran in.
    """

    at: float
    begins: bool
    sort: str
    task: str
    run_id: str
    call_id: str
    pid: int

    @property
    def call(self) -> tuple[str, str]:
        return (self.run_id, self.call_id)


def now() -> float:
    """Seconds since the machine was booted: what all its processes agree on, shells included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_tool_log(path: Path) -> list[ToolLine]:
    """The lines of a log in the order in which they were written."""
    return list(_lines(path)) if path.exists() else []


def _lines(path: Path) -> Iterator[ToolLine]:
    # A line that is being written has no end yet.
    whole, _, _ = path.read_text().rpartition("\n")
    for line in whole.splitlines():
        at, word, sort, task, run_id, call_id, pid = line.split()
        yield ToolLine(
            at=float(at),
            begins=word == "begin",
            sort=sort,
            task=task,
            run_id=run_id,
            call_id=call_id,
            pid=int(pid),
        )
