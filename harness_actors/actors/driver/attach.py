"""Reaching the cell of a journal that another process has up, or has left behind."""

import asyncio
from pathlib import Path

from harness_actors.actors.cell_processes import coordinator_of, ray_of
from harness_actors.actors.processes import wait_until_gone
from harness_actors.actors.runtime import Runtime
from harness_actors.errors import CellError

ENDS_WITHIN_S = 5.0
"""How long the coordinator of a Ray that is being ended may outlive its head."""


async def attach(store: Path, address: str | None = None) -> Runtime | None:
    """The cell that serves a journal now, for calls such as `stop`. No Ray is started.

    Closing what this returns would stop the cell for all, so leave it as it is.

    Args:
        store: The journal's file.
        address: Which Ray; None finds the one that the cell's coordinator lives in, which
            must be on this machine.

    Returns:
        None where no cell of this journal is up there, or its Ray ends meanwhile.

    Raises:
        CellError: The Ray does not let us in.
    """
    mark = None
    is_named = address not in (None, "auto", "local")
    if not is_named:
        mark = await asyncio.to_thread(coordinator_of, store)
        address = None if mark is None else ray_of(mark)
    if address is None:
        return None
    # Loading Ray takes a second; whoever finds no cell does not pay that.
    from harness_actors.actors.on_ray.attach import attach_at

    try:
        return await attach_at(store, address, is_named=is_named)
    except CellError:
        # Whoever had started it has ended it since it was found, perhaps.
        if mark is None or not await asyncio.to_thread(
            wait_until_gone, mark, timeout_s=ENDS_WITHIN_S
        ):
            raise
        return None
