"""The runtimes: how the plain classes of the other rooms become actors."""

from collections.abc import Callable
from pathlib import Path

from harness_actors.actors.runtime import News, Runtime, RuntimeKind, StopMode

__all__ = ["News", "Runtime", "RuntimeKind", "StopMode", "open_runtime"]


async def open_runtime(
    kind: RuntimeKind,
    *,
    store: Path,
    address: str | None = None,
    command: str,
    on_progress: Callable[[str], None] | None = None,
    on_loss: Callable[[str], None] | None = None,
    lasting: bool = True,
) -> Runtime:
    """Start what serves the runs of a journal.

    Args:
        kind: ``"ray"``, or ``"local"`` for this process and event loop alone.
        store: The journal's file; made if there is none. Its caller holds its lock.
        address: Which Ray; see `joining.connect`.
        command: Who owns the runs of a cell that is started: what it has in progress goes
            on by itself after a restart of the coordinator, the runs of others do not.
        on_progress: Told in a few words what is being waited for.
        on_loss: Told in a line that Ray was lost, and what is done about that; None logs it as
            a warning.
        lasting: Another command may come for this journal, so its cell may stay for a while.

    Raises:
        CellError: The actors did not come up.
        StoreError: The journal cannot be served.
        StoreInUseError: It has runs in progress in a cell that another command left behind,
            on another Ray or of another version.
        BadInputError: ``$HARNESS_CELL_IDLE_S`` or ``$HARNESS_WARM_CELLS``, which say how
            long a cell under a Ray that was there before waits for the next command, and how
            many newer cells may be idle meanwhile, is not a number.
    """
    tell = on_progress or (lambda _: None)
    if kind == "local":
        from harness_actors.actors.local import LocalRuntime
        from harness_actors.actors.retiring import make_way

        await make_way(store)
        return await LocalRuntime.open(store, command)
    tell("starting the actors on Ray")
    # Loading Ray takes a second; whoever runs without it does not pay that.
    from harness_actors.actors.joining.quiet import load_ray

    load_ray()
    from harness_actors.actors.on_ray.runtime import RayRuntime

    return await RayRuntime.open(store, command, address, lasting=lasting, on_loss=on_loss)
