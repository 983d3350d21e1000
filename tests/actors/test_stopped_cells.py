"""On real Ray: a coordinator that is stopped, and one that can do nothing more."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import RayActorError

from harness_actors.actors.joining.connect import connect
from harness_actors.actors.on_ray.coordinator import RayCoordinatorActor
from harness_actors.actors.on_ray.placement import node_of_driver, on_node
from harness_actors.actors.processes import is_alive
from harness_actors.errors import CellError, StaleTermError
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader, SqliteJournal
from tests.actors.followers import opened, results, specs, submit
from tests.actors.tasks import lines, note_then_complete, written

pytestmark = [pytest.mark.ray, pytest.mark.timeout(200)]


def process_of(store: Path, role: str) -> ProcessMark:
    """The newest process of an actor."""
    journal = JournalReader(store)
    try:
        return [mark for mark in journal.load_processes() if mark.role == role][-1]
    finally:
        journal.close()


async def test_a_coordinator_that_is_stopped_is_found_and_replaced(tmp_path: Path) -> None:
    program = note_then_complete(tmp_path / "log", rounds=6, seconds=0.3)
    runs = specs(program, 4)
    store = tmp_path / "runs.db"

    async with opened("ray", store) as runtime:
        await submit(runtime, program, runs)
        await written(tmp_path / "log", 6)
        stopped = process_of(store, "coordinator")
        os.kill(stopped.pid, signal.SIGSTOP)
        ended = await results(runtime, [spec.run_id for spec in runs])

    assert {result.status for result in ended.values()} == {"done"}
    assert not is_alive(stopped)
    logged = lines(tmp_path / "log")
    assert len(logged) == len(set(logged)), "no call started twice"


async def test_a_coordinator_that_cannot_commit_says_so_and_leaves_for_good(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs.db"
    connect("local")
    # Named and restarted as that of a cell is, to see that it is not.
    options = {"name": "broken", "max_restarts": -1, **on_node(node_of_driver())}
    actor = RayCoordinatorActor.options(**options)
    coordinator: Any = actor.remote(str(store), "command", node_of_driver(), 1, leave_s=0.1)
    await coordinator.call.remote("attach", {})
    journal = SqliteJournal(store)
    journal.begin_term()
    journal.close()
    program = note_then_complete(tmp_path / "log", rounds=1, seconds=0)

    with pytest.raises(StaleTermError):
        await coordinator.call.remote("submit", specs(program, 1), {program.code: program.blob}, {})
    with pytest.raises(StaleTermError):
        await coordinator.call.remote("wait_for_news", 0, False)

    async with asyncio.timeout(30):
        while await answers(coordinator):
            pass
    # Longer than Ray takes to start the next incarnation of one that it restarts.
    await asyncio.sleep(4.0)
    assert not await answers(coordinator)
    assert "broken" not in ray.util.list_named_actors()


async def test_a_coordinator_that_cannot_begin_says_why_in_our_words(tmp_path: Path) -> None:
    connect("local")
    actor = RayCoordinatorActor.options(**on_node(node_of_driver()))
    # Whatever of ours is wrong there; this stands for it.
    coordinator: Any = actor.remote(str(tmp_path / "runs.db"), "command", "", "many", leave_s=30)

    with pytest.raises(CellError, match=r"the coordinator.*TypeError.*'str' object"):
        await coordinator.call.remote("attach", {})


async def answers(coordinator: Any) -> bool:
    try:
        await coordinator.hello.remote()
    except RayActorError:
        return False
    return True
