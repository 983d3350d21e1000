"""How fast this machine is just now, beside the one on which bars of time were set."""

import time
from functools import cache
from statistics import median

ADDITIONS = 1_000_000
THERE_S = 0.02
"""What so many additions take in Python where the bars were set."""
TIMES = 5


@cache
def slowness() -> float:
    """How many times as long this machine takes to compute: 1.0 where it is no slower.

    Measured once in a process, when it is first asked for: behind what is judged by it.
    """
    return max(1.0, round(median(_additions_s() for _ in range(TIMES)) / THERE_S, 2))


def _additions_s() -> float:
    began, total = time.perf_counter(), 0
    for number in range(ADDITIONS):
        total += number
    return time.perf_counter() - began
