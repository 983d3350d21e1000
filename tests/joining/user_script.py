"""A script that uses Ray for work of its own, and the harness in all the places it has.

    python -m tests.joining.user_script ADDRESS FOLDER

It connects by itself, with a namespace and a working directory of its own. Prints one JSON
object: for each place how a run there ended, and where its cell was.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
import ray._private.state

from harness_actors import AgentHarness
from harness_actors.actors.cell_key import cell_name
from harness_actors.tools.processes import read_process
from tests.joining.agents import repeats

GONE_WITHIN_S = 60.0
AGENT = repeats()


def coordinators() -> dict[str, str]:
    """The coordinators of this Ray by name, with their nodes."""
    named = ray.util.list_named_actors(all_namespaces=True)
    names = [one["name"] for one in named if one["namespace"] == "harness_actors"]
    found = {}
    for name in names:
        with suppress(ValueError):  # it has left since
            actor = ray.get_actor(name, namespace="harness_actors")
            state = ray._private.state.actors(actor._actor_id.hex())
            if state["State"] == "ALIVE":
                found[name] = state["Address"]["NodeID"]
    return found


async def use(store: str) -> dict[str, Any]:
    """A run, and what is to be seen of its cell while it is there."""
    async with AgentHarness(AGENT, store=store) as harness:
        result = await harness.run(f"in process {os.getpid()}")
        node_of_cell = coordinators().get(cell_name(Path(store)))
    here = ray.get_runtime_context().get_node_id()
    return {
        "text": result.output_text,
        "expected": f"done: in process {os.getpid()}",
        "on_my_node": node_of_cell == here,
        "node": here,
        "namespace": ray.get_runtime_context().namespace,
    }


@ray.remote(num_cpus=0, resources={"second": 0.1}, max_retries=0)
def in_task(store: str) -> dict[str, Any]:
    return asyncio.run(use(store))


class Worker:
    def work(self, store: str) -> dict[str, Any]:
        return asyncio.run(use(store))

    def pid(self) -> int:
        return os.getpid()

    def leave_open(self, store: str) -> str:
        """A run whose harness is never closed."""
        return asyncio.run(AgentHarness(AGENT, store=store).run("left open")).output_text


class AsyncWorker:
    async def work(self, store: str) -> dict[str, Any]:
        return await use(store)


def use_everywhere(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = {"driver": asyncio.run(use(str(folder / "driver.db")))}
    worker: Any = ray.remote(num_cpus=0)(Worker).remote()
    async_worker: Any = ray.remote(num_cpus=0)(AsyncWorker).remote()
    # At the same time, for the cells need some seconds to come up.
    places = {
        "task": in_task.remote(str(folder / "task.db")),
        "actor": worker.work.remote(str(folder / "actor.db")),
        "async_actor": async_worker.work.remote(str(folder / "async.db")),
    }
    told |= {place: ray.get(reference) for place, reference in places.items()}
    told["left"] = ray.get(worker.leave_open.remote(str(folder / "actor.db")))
    pid = ray.get(worker.pid.remote())
    ray.kill(worker)
    while read_process(pid) is not None:
        time.sleep(0.05)  # Ray calls it dead before it is gone, and it has its store locked
    told["after_its_worker"] = asyncio.run(use(str(folder / "actor.db")))["text"]
    return told


def cells_left() -> int:
    """How many cells are there when they had the time to leave."""
    until = time.monotonic() + GONE_WITHIN_S
    while coordinators() and time.monotonic() < until:
        time.sleep(0.2)
    return len(coordinators())


async def use_again(harness: AgentHarness) -> str:
    async with harness:
        return (await harness.run("after")).output_text


if __name__ == "__main__":
    address, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "work").mkdir()
    (folder / "work" / "data.txt").write_text("mine")
    ray.init(
        address=address,
        namespace="mine",
        runtime_env={"working_dir": str(folder / "work")},
        configure_logging=False,
        log_to_driver=False,
    )
    told = use_everywhere(folder)
    told["still_mine"] = ray.get_runtime_context().namespace
    harness = AgentHarness(AGENT, store=folder / "again.db", address=address)
    told["before_shutdown"] = asyncio.run(harness.run("before")).output_text
    ray.shutdown()
    # The script is done with Ray, and the harness connects by itself.
    told["after_shutdown"] = asyncio.run(use_again(harness))
    told["cells_left"] = cells_left()
    print(json.dumps(told))
