"""Faults in how worker processes are kept: how many, for what, and for how long."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from harness_actors.tools.workers.pool import CallWorker, WorkerPool
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.working import KILLED, MOST, ONE_CALL


def _none_is_killed() -> Patches:
    def patched(self: WorkerPool, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        work.close()
        return asyncio.get_running_loop().create_task(asyncio.sleep(0))

    return [(WorkerPool, "_begin", patched)]


def _messy_ones_stay() -> Patches:
    async def patched(self: WorkerPool, worker: CallWorker) -> None:
        if worker.is_alive:
            self._put_back(worker)
        else:
            await end(self, worker)

    end = WorkerPool._end
    return [(WorkerPool, "_end", patched)]


def _as_many_as_are_asked_for() -> Patches:
    def patched(self: WorkerPool, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        self._places = asyncio.Semaphore(99)

    init = vars(WorkerPool)["__init__"]
    return [(WorkerPool, "__init__", patched)]


def _each_is_lent_twice() -> Patches:
    async def patched(self: WorkerPool, marks: Any) -> CallWorker:
        worker = await lent(self, marks)
        self._put_back(worker)
        return worker

    lent = WorkerPool._lent
    return [
        (WorkerPool, "_lent", patched),
        (WorkerPool, "__init__", _as_many_as_are_asked_for()[0][2]),
    ]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("worker processes are not killed", _none_is_killed, frozenset({KILLED})),
    PlantedBug("worker processes that misbehave stay", _messy_ones_stay, frozenset({ONE_CALL})),
    PlantedBug(
        "there are as many worker processes as are asked for",
        _as_many_as_are_asked_for,
        frozenset({MOST}),
    ),
    PlantedBug("a worker process is lent twice", _each_is_lent_twice, frozenset({ONE_CALL})),
)
