"""The cells of one node: those that are idle leave where there are more than stay warm."""

import asyncio
from contextlib import suppress
from typing import Any

from ray._common.utils import get_system_memory  # see `is_memory_short`
from ray._private.utils import get_used_memory
from ray.exceptions import RayError

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.coordinator.warm_cells import by_age
from harness_actors.actors.on_ray.known_cells import KnownCell, describe_cell, list_cells

SHORT_OF_MEMORY = 0.9
"""Share of the node's memory in use from which on no idle cell is worth its own. Ray itself
ends processes at 0.95."""


async def make_room(node: str, *, short: bool = False) -> None:
    """Ask the idle cells of a node whether they may stay although there are newer ones.

    Each decides for itself, by the number that its own command has named, and none leaves
    that is in use by then. Whoever asks at the same moment asks the same ones.

    Args:
        node: Ray's id of the node.
        short: Its memory is: ask the one that has been idle for longest to leave in any case.
    """
    cells = await asyncio.to_thread(list_cells)
    told = await asyncio.gather(*(describe_cell(cell) for cell in cells))
    here: list[tuple[KnownCell, CellFacts]] = [
        (cell, facts)
        for cell, facts in zip(cells, told, strict=True)
        if facts is not None and facts.node == node
    ]
    asked = by_age(facts for _, facts in here)
    known = {facts.pid: cell for cell, facts in here}
    for facts, newer in asked[:1] if short else asked:
        coordinator: Any = known[facts.pid].coordinator
        with suppress(RayError):  # it is gone by itself, or of a version without this call
            await coordinator.give_room.remote(newer, short)


def is_memory_short() -> bool:
    """Whether the node, or the container that we are in, has hardly any memory left."""
    # By Ray's own measure, which knows control groups, and by which it ends processes.
    used: int = get_used_memory()  # type: ignore[no-untyped-call]
    return bool(used > SHORT_OF_MEMORY * get_system_memory())
