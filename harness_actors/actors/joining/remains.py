"""What is left on this machine of a Ray that is dead."""

import os
import time

from harness_actors.actors.joining.quiet import RAYLET_VARIABLE
from harness_actors.actors.processes import end_processes, mark_of
from harness_actors.records import ProcessMark
from harness_actors.tools.processes import carries, list_processes


def end_what_is_left(raylet: ProcessMark, *, within_s: float) -> None:
    """End what a raylet that is dead has started, and what that has started in turn.

    A raylet that dies leaves its actors, and they their tools.
    """
    # Not what only looks so from here: another namespace counts pids of its own.
    namespace = os.readlink("/proc/self/ns/pid")
    until = time.monotonic() + within_s
    carried = {RAYLET_VARIABLE: str(raylet.pid)}
    while time.monotonic() < until:
        found = [
            mark_of(process.pid, "left by a raylet")
            for process in list_processes().values()
            if process.started >= raylet.started
            and process.pid != os.getpid()
            and carries(process.pid, carried)
            and _namespace(process.pid) == namespace
        ]
        if not found:
            return
        end_processes(found, timeout_s=within_s)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""  # it ended meanwhile
