"""Runs a scanning program in a process that can be stopped, whatever it is scanning for."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness_actors.tools.stopping import check_stopped

SEARCH_TIME_S = 10.0
"""How long one search may take, in seconds."""
LOOK_EACH_S = 0.1
"""How soon a search ends that was stopped."""


def scan(
    program: Path, question: Mapping[str, Any], opened: int, *, time_s: float | None = None
) -> list[dict[str, Any]]:
    """The answers of a scanning program, as many as it found in time.

    Args:
        program: A file of Python that imports the standard library alone, reads the question
            from stdin and writes a line of JSON as each answer is found.
        question: Plain values. `seconds` is added: it ends by itself where nobody is left to
            end it.
        opened: A descriptor that it is given.
        time_s: How long it may take, in seconds; None for `SEARCH_TIME_S`.
    """
    time_s = SEARCH_TIME_S if time_s is None else time_s
    # -I -S: nothing of ours or the user's is imported, and it starts in 15 ms.
    arguments = [sys.executable, "-I", "-S", "-X", "utf8", str(program)]
    asked = {**question, "seconds": time_s + 1.0}
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        pass_fds=(opened,),
    ) as scanning:
        try:
            output, in_time = _output(scanning, json.dumps(asked).encode(), time_s)
        finally:
            scanning.kill()
    # What follows the last line end was cut off in the middle.
    answers = [json.loads(line) for line in output.split(b"\n")[:-1]]
    return answers if in_time else [*answers, {"broken": f"it took {time_s:g} s"}]


def _output(
    scanning: "subprocess.Popen[bytes]", question: bytes, time_s: float
) -> tuple[bytes, bool]:
    """What it wrote, and whether it ended in time."""
    until = time.monotonic() + time_s
    given: bytes | None = question
    while time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            return scanning.communicate(given, timeout=min(LOOK_EACH_S, time_s))[0], True
        given = None
        check_stopped()
    scanning.kill()
    return scanning.communicate()[0], False
