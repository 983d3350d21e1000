"""Many schedules, spread over processes."""

import gc
import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.simulation.schedule import Mode, Report, Schedule

CHUNK = 10
"""Schedules that a process does before it says what came of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of many schedules.

    Attributes:
        schedules: How many there were.
        steps: How many steps they took.
        seconds: How long that took, on the wall.
        broken: The report of the lowest seed that broke a promise; None where none did.
        other: The same, of one that broke only promises that nobody asked for.
    """

    schedules: int
    steps: int
    seconds: float
    broken: Report | None
    other: Report | None = None

    @property
    def per_second(self) -> float:
        return self.schedules / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a process does before it says what came of it; as `run_many` is told."""

    seeds: range
    mode: Mode
    without: frozenset[str]
    breaks: frozenset[str] | None


def run_many(
    seeds: range,
    mode: Mode,
    *,
    jobs: int,
    without: frozenset[str] = frozenset(),
    breaks: frozenset[str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run schedules, until one breaks a promise.

    Args:
        seeds: Which.
        mode: With which journal.
        jobs: Processes to use, at least 1.
        without: Kinds of disturbances that are left out.
        breaks: The promises that are asked for; None for all. The others are looked over.
        progress: Told now and then how many are done.
    """
    begun = time.perf_counter()
    places = range(0, len(seeds), CHUNK)
    chunks = [Chunk(seeds[at : at + CHUNK], mode, without, breaks) for at in places]
    schedules = steps = 0
    broken: Report | None = None
    other: Report | None = None
    # Forked: what was imported, and perhaps changed by a test, is there at once; and frozen, or the
    # first collection of garbage in each process would touch, and so copy, all of it.
    with multiprocessing.get_context("fork").Pool(jobs, initializer=gc.freeze) as pool:
        for done in pool.imap(_run_chunk, chunks):
            schedules, steps = schedules + done.schedules, steps + done.steps
            progress(schedules)
            other = other or done.other
            if done.broken is not None:
                broken = done.broken
                break
    seconds = time.perf_counter() - begun
    return Outcome(schedules=schedules, steps=steps, seconds=seconds, broken=broken, other=other)


def _run_chunk(chunk: Chunk) -> Outcome:
    begun = time.perf_counter()
    count = steps = 0
    broken: Report | None = None
    other: Report | None = None
    with quiet():
        for seed in chunk.seeds:
            report = Schedule(seed, mode=chunk.mode, without=chunk.without).run()
            count, steps = count + 1, steps + report.steps
            if not report.violations:
                continue
            if chunk.breaks is None or report.breaks & chunk.breaks:
                broken = report
                break
            other = other or report
    seconds = time.perf_counter() - begun
    return Outcome(schedules=count, steps=steps, seconds=seconds, broken=broken, other=other)


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
        # What is left by now, no schedule holds: it is not looked at again.
        gc.freeze()
        logging.disable(logging.NOTSET)
