"""Reaching the cell of a journal that another process has up, or has left behind."""

import asyncio
from pathlib import Path

from harness_actors.actors.cell_processes import coordinator_of, is_listened_at, ray_of
from harness_actors.actors.processes import is_alive, wait_until_gone
from harness_actors.actors.runtime import Runtime
from harness_actors.errors import CellError
from harness_actors.records import ProcessMark

ENDS_WITHIN_S = 5.0
"""How long a Ray that is being ended may take over its last, its coordinator or our connection."""
LOOK_S = 0.5


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

    reaching = asyncio.create_task(attach_at(store, address, is_named=is_named))
    if mark is None:
        return await reaching
    ended = asyncio.create_task(_ended(mark, address))
    try:
        await asyncio.wait((reaching, ended), return_when=asyncio.FIRST_COMPLETED)
        # Ray goes on looking for a minute for what was there a moment ago.
        return await reaching if reaching.done() else None
    except CellError:
        # Whoever had started it has ended it since it was found, perhaps.
        if not await asyncio.to_thread(wait_until_gone, mark, timeout_s=ENDS_WITHIN_S):
            raise
        return None
    finally:
        reaching.cancel()
        ended.cancel()


async def _ended(coordinator: ProcessMark, ray: str) -> None:
    """Return a while after both are gone."""
    while is_alive(coordinator) or await asyncio.to_thread(is_listened_at, ray):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
    await asyncio.sleep(ENDS_WITHIN_S)
