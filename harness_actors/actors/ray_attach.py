"""The other end of `attach`: a driver beside the one that started the cell."""

import asyncio
from pathlib import Path

import ray

from harness_actors.actors.ray_cell import NAMESPACE, connect
from harness_actors.actors.ray_runtime import STARTER_THREAD, RayRuntime, cell_name


async def attach_at(store: Path, address: str) -> RayRuntime | None:
    """The cell of a journal on the Ray at an address; None where it has none.

    Raises:
        CellError: Nobody answers there, or it does not let us in.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(STARTER_THREAD, _find, store, address)


def _find(store: Path, address: str) -> RayRuntime | None:
    if ray.is_initialized() and ray.get_runtime_context().gcs_address != address:
        # That of the cell before this one.
        ray.shutdown()
    connect(address)
    try:
        coordinator = ray.get_actor(cell_name(store), namespace=NAMESPACE)
    except ValueError:
        return None
    return RayRuntime(coordinator)
