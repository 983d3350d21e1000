"""The other end of `attach`: a driver that did not start the cell."""

from pathlib import Path

import ray

from harness_actors.actors.joining.connect import connect
from harness_actors.actors.joining.starter import on_starter_thread
from harness_actors.actors.on_ray.calls import CoordinatorCalls
from harness_actors.actors.on_ray.known_cells import KnownCell, find_cell, list_cells
from harness_actors.actors.on_ray.runtime import RayRuntime


async def attach_at(store: Path, address: str, *, is_named: bool) -> RayRuntime | None:
    """The cell of a journal on the Ray at an address; None where it has none.

    Cancelled, it goes on in its thread until Ray gives up, but keeps no process from its end.

    Args:
        store: The journal's file.
        address: ``HOST:PORT``.
        is_named: See `connect`.

    Raises:
        CellError: Nobody answers there, or it does not let us in.
    """
    cell = await on_starter_thread(_find, store, address, is_named, is_needed=False)
    return None if cell is None else RayRuntime.of(store, CoordinatorCalls(cell.coordinator))


async def cells_at(address: str, *, is_named: bool) -> list[KnownCell]:
    """All cells on the Ray at an address.

    Args:
        address: ``HOST:PORT``.
        is_named: See `connect`.

    Raises:
        CellError: Nobody answers there, or it does not let us in.
    """
    return await on_starter_thread(_list, address, is_named)


def _list(address: str, is_named: bool) -> list[KnownCell]:
    _connect_to(address, is_named)
    return list_cells()


def _find(store: Path, address: str, is_named: bool) -> KnownCell | None:
    _connect_to(address, is_named)
    others = (cell for cell in list_cells() if cell.store == store.resolve())
    return find_cell(store) or next(others, None)


def _connect_to(address: str, is_named: bool) -> None:
    if ray.is_initialized() and ray.get_runtime_context().gcs_address != address:
        # That of the cell before this one.
        ray.shutdown()
    connect(address, is_named=is_named)
