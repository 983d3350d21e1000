"""Many schedules, spread over processes."""

import gc
import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.simulation.schedule import Mode, Report, Schedule

CHUNK = 50
"""Schedules that a process does before it says what came of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of many schedules.

    Attributes:
        schedules: How many there were.
        steps: How many steps they took.
        seconds: How long that took, on the wall.
        broken: The report of the lowest seed that broke a promise; None where none did.
    """

    schedules: int
    steps: int
    seconds: float
    broken: Report | None

    @property
    def per_second(self) -> float:
        return self.schedules / max(self.seconds, 1e-9)


def run_many(
    seeds: range,
    mode: Mode,
    *,
    jobs: int,
    without: frozenset[str] = frozenset(),
    progress: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run schedules, until one breaks a promise.

    Args:
        seeds: Which.
        mode: With which journal.
        jobs: Processes to use, at least 1.
        without: Kinds of disturbances that are left out.
        progress: Told now and then how many are done.
    """
    begun = time.perf_counter()
    chunks = [(seeds[at : at + CHUNK], mode, without) for at in range(0, len(seeds), CHUNK)]
    schedules = steps = 0
    broken: Report | None = None
    # Forked: what was imported, and perhaps changed by a test, is there at once.
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for count, taken, report in pool.imap(_run_chunk, chunks):
            schedules, steps = schedules + count, steps + taken
            progress(schedules)
            if report is not None:
                broken = report
                break
    seconds = time.perf_counter() - begun
    return Outcome(schedules=schedules, steps=steps, seconds=seconds, broken=broken)


def _run_chunk(chunk: tuple[range, Mode, frozenset[str]]) -> tuple[int, int, Report | None]:
    seeds, mode, without = chunk
    steps = 0
    with quiet():
        for number, seed in enumerate(seeds, start=1):
            report = Schedule(seed, mode=mode, without=without).run()
            steps += report.steps
            if report.violations:
                return number, steps, report
    return len(seeds), steps, None


@contextmanager
def quiet() -> Iterator[None]:
    """No log, and garbage is collected once at the end: both take longer than the schedules."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        logging.disable(logging.NOTSET)
