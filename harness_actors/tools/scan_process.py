"""The process of a search, bounded in time and memory; a program of its own.

A regular expression can run for ever and hold the interpreter while it does, and only a process
can be stopped: `scanning` runs this file in one. Of ours it loads only the module that searches,
and like that it imports nothing but the standard library.
"""

import json
import os
import re
import resource
import signal
import sys
from importlib import import_module
from typing import Any

MAX_MEMORY_BYTES = 250_000_000
"""Addresses that the process may take: some expressions remember each step."""


def main() -> None:
    """Read a question from stdin; write a line of JSON as each answer is found.

    The question names the `module` of this folder that searches, and the `pattern` to search for.
    The module has `FLAGS` of its expressions, and `answers`, which takes question and expression.
    """
    question: dict[str, Any] = json.load(sys.stdin)
    _bound(question["seconds"])
    # Behind the standard library: no name of ours stands in for one of its.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    sys.dont_write_bytecode = True
    module = import_module(question["module"])
    try:
        wanted, fault = compiled(question["pattern"], module.FLAGS)
        _say({"fault": fault})
        for answer in module.answers(question, wanted):
            _say(answer)
    except MemoryError:
        _say({"broken": f"it took more than {MAX_MEMORY_BYTES // 1_000_000} MB"})


def compiled(pattern: str, flags: int) -> tuple["re.Pattern[str]", str | None]:
    """A regular expression, and None; of a faulty one its text, and what is wrong."""
    try:
        return re.compile(pattern, flags), None
    except (re.error, RecursionError, OverflowError) as error:
        return re.compile(re.escape(pattern)), str(error)


def _bound(seconds: float) -> None:
    # Whoever asked may be killed, and a regular expression hears no signal but one that kills.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > MAX_MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, most))


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
