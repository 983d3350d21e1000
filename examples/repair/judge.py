"""Scores the solution.py of the current folder.

Exit status 0: it passes. 1: it is wrong. 2: it ran out of time. Nothing else says that it passes:
what the solution prints, or how its process ends, does not.

The solution cannot be trusted: it was written by whoever wants the score. So it runs in a process
of its own. This process, which knows the tests, sends it arguments and gets back answers, both as
Python literals. An answer is plain data by the time a test looks at it; the solution has no way
into the process that compares.

`build.py` makes a `check_solution.py` of this file by putting a problem's tests under it. Run that
with `python -I -S`, which imports nothing from the current folder in place of the standard library.
"""

import ast
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

WALL_LIMIT_S = 8.0

# CPU time and not wall time decides what is too slow: it is the same on a busy machine.
SOLUTION_PROCESS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the solution prints is no answer
sys.path.append(os.getcwd())
import solution
function = getattr(solution, sys.argv[1])
for line in sys.stdin:
    print(repr(function(*eval(line))), file=answers, flush=True)
"""
LONGEST_ANSWER = 1_000_000


class NoAnswerError(Exception):
    """The solution's process ended, or answered with something that is not a literal."""


class Solution:
    """The function under test, called in another process."""

    def __init__(self, function: str) -> None:
        self.last_call = "the import of solution.py"
        self._function = function
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SOLUTION_PROCESS, function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._deadline = threading.Timer(WALL_LIMIT_S, self._process.kill)
        self._deadline.start()

    def __call__(self, *arguments: object) -> object:
        self.last_call = f"{self._function}({', '.join(map(repr, arguments))})"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(repr(arguments) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline(LONGEST_ANSWER)
            value: object = ast.literal_eval(answer)
        except (OSError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise NoAnswerError from None
        self.last_call += f" -> {answer.strip()}"
        return value

    def timed_out(self) -> bool:
        """Wait until the process ends, now that nothing more is asked; whether a limit ended it."""
        self._process.communicate()
        return self._process.returncode < 0

    def stop(self) -> None:
        self._deadline.cancel()
        self._process.kill()
        self._process.wait()


def judge(check: Callable[[Callable[..., object]], None], function: str, script: Path) -> int:
    """Run a problem's tests against a function of solution.py.

    Args:
        check: The tests: raises unless the function that it is given is right.
        function: The function's name.
        script: The file with the tests. It is removed: they are in memory by now, and not for the
            solution to read.

    Returns:
        The exit status.
    """
    if not Path("solution.py").is_file():
        print("there is no solution.py")
        return 1
    script.unlink()
    random.seed(0)
    solution = Solution(function)
    try:
        check(solution)
    except Exception:  # noqa: BLE001  whatever a wrong answer leads to in a test, it is wrong
        timed_out = solution.timed_out()
        print("timed out in" if timed_out else "failed at", solution.last_call[:500])
        return 2 if timed_out else 1
    finally:
        solution.stop()
    print("passed")
    return 0
