"""A tool that takes too much memory is killed by the kernel, and takes none from the machine."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.chaos import logged_tools
from tests.chaos.logged_tools import is_bounded_by
from tests.chaos.logs import ToolLine
from tests.chaos.memory import MemoryDeaths, SmallMemory, small_memory


def a_crash() -> ToolLine:
    return ToolLine(
        at=0.0, begins=True, sort="crash", task="t0", run_id="r", call_id="c", pid=os.getpid()
    )


def test_the_kernel_kills_it_where_memory_can_be_bounded_and_sigkill_elsewhere() -> None:
    command = [sys.executable, logged_tools.__file__]
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['run_out_of_memory']()"
    with small_memory() as group:
        ran = subprocess.run(
            [command[0], "-c", code, command[1]],
            env={**os.environ, **group.variables},
            timeout=60,
            check=False,
        )
        deaths = group.deaths([a_crash()])

    assert ran.returncode == -signal.SIGKILL
    if group.path is None:
        assert (deaths.by_kernel, deaths.by_signal) == (0, 1)
        assert deaths.problem
    else:
        assert (deaths.by_kernel, deaths.by_signal) == (1, 0)
        assert not group.path.exists()


def test_a_folder_that_only_looks_like_a_group_bounds_nothing(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1048576\n")

    assert not is_bounded_by(tmp_path)


def test_the_report_says_who_killed_it_and_why_it_was_not_the_kernel() -> None:
    without = SmallMemory(None, "no control groups").deaths([a_crash(), a_crash()])

    assert str(without) == "0 out of memory by the kernel, 2 by SIGKILL (no control groups)"
    assert str(MemoryDeaths(by_kernel=3, by_signal=0)).startswith("3 out of memory by the kernel")
