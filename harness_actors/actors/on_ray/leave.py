"""As a command, asks the cell of a journal to leave: ``python -m … STORE ADDRESS``.

For processes that are not to be connected to that Ray. Prints one JSON object: how many runs
are ``in_progress``, for which it stays, or the ``problem`` for which it cannot be asked.
"""

import asyncio
import json
import sys
from pathlib import Path

from harness_actors.actors.on_ray.attach import cells_at
from harness_actors.actors.on_ray.cells import retire
from harness_actors.errors import HarnessError


async def leave(store: Path, address: str) -> int:
    """Ask all cells of a journal on a Ray to leave; returns how many runs keep one there."""
    found = await cells_at(address, is_named=False)
    cells = [cell for cell in found if cell.store == store]
    return sum([await retire(cell) for cell in cells])


def main(store: str, address: str) -> None:
    answer: dict[str, object] = {"in_progress": 0, "problem": ""}
    try:
        answer["in_progress"] = asyncio.run(leave(Path(store).resolve(), address))
    except HarnessError as error:
        answer["problem"] = str(error)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
