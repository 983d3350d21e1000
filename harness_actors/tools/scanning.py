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


def scan(program: Path, question: Mapping[str, Any], opened: int) -> list[dict[str, Any]]:
    """The answers of a scanning program, as many as it found in time.

    Args:
        program: A file of Python that imports the standard library alone, reads the question
            from stdin and writes a line of JSON as each answer is found.
        question: Plain values. `seconds` is added: it ends by itself where nobody is left to
            end it.
        opened: A descriptor that it is given.
    """
    # -I -S: nothing of ours or the user's is imported, and it starts in 15 ms.
    arguments = [sys.executable, "-I", "-S", "-X", "utf8", str(program)]
    asked = {**question, "seconds": SEARCH_TIME_S + 1.0}
    with subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        pass_fds=(opened,),
    ) as scanning:
        try:
            output, in_time = _output(scanning, json.dumps(asked).encode())
        finally:
            scanning.kill()
    # What follows the last line end was cut off in the middle.
    answers = [json.loads(line) for line in output.split(b"\n")[:-1]]
    return answers if in_time else [*answers, {"broken": f"it took {SEARCH_TIME_S:g} s"}]


def _output(scanning: "subprocess.Popen[bytes]", question: bytes) -> tuple[bytes, bool]:
    """What it wrote, and whether it ended in time."""
    until = time.monotonic() + SEARCH_TIME_S
    given: bytes | None = question
    while time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            return scanning.communicate(given, timeout=LOOK_EACH_S)[0], True
        given = None
        check_stopped()
    scanning.kill()
    return scanning.communicate()[0], False
