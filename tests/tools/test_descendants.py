"""Which processes are below another one."""

import os
import subprocess
import sys
import threading

from harness_actors.tools.supervision.descendants import children


def test_children_that_another_thread_has_started_are_children_too() -> None:
    started: list[subprocess.Popen[bytes]] = []
    done = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        done.wait()  # they belong to the thread as long as it lives

    thread = threading.Thread(target=start)
    thread.start()
    try:
        while not started:
            thread.join(0.01)
        assert started[0].pid in children(os.getpid())
    finally:
        done.set()
        thread.join()
        for one in started:
            one.communicate(b"\n")
