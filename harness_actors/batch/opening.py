"""How a batch gets the runtime of its journal."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from harness_actors.actors import open_runtime
from harness_actors.actors.cell_lifetime import idle_s, warm_cells
from harness_actors.actors.runtime import Runtime, RuntimeKind

OpenRuntime = Callable[[Path], Awaitable[Runtime]]
"""Opens the runtime of a journal."""


def opener(
    runtime: RuntimeKind,
    address: str | None = None,
    on_progress: Callable[[str], None] | None = None,
    *,
    lasting: bool = True,
) -> OpenRuntime:
    """Opens runtimes of one kind, as a command of its own.

    Raises:
        BadInputError: ``$HARNESS_CELL_IDLE_S`` or ``$HARNESS_WARM_CELLS`` is not a number.
    """
    if runtime == "ray":
        # They are read when Ray is up, which is late to be told of a mistake.
        idle_s()
        warm_cells()

    async def open_it(store: Path) -> Runtime:
        command = uuid4().hex
        return await open_runtime(
            runtime,
            store=store,
            address=address,
            command=command,
            on_progress=on_progress,
            on_loss=on_progress,
            lasting=lasting,
        )

    return open_it
