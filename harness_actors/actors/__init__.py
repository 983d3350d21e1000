"""The runtimes: how the plain classes of the other rooms become actors."""

from collections.abc import Callable
from pathlib import Path

from harness_actors.actors.runtime import Happened, Runtime, RuntimeKind, StopMode

__all__ = ["Happened", "Runtime", "RuntimeKind", "StopMode", "open_runtime"]


async def open_runtime(
    kind: RuntimeKind,
    *,
    store: Path,
    address: str | None = None,
    command: str,
    on_progress: Callable[[str], None] | None = None,
) -> Runtime:
    """Start what serves the runs of a journal.

    Args:
        kind: ``"ray"``, or ``"local"`` for this process and event loop alone.
        store: The journal's file; made if there is none. Its caller holds its lock.
        address: Which Ray; see `ray_cell.connect`.
        command: Name of the command that submits the runs, the same after a restart of
            the coordinator and another for another command.
        on_progress: Told in a few words what is being waited for.

    Raises:
        CellError: The actors did not come up.
        StoreError: The journal cannot be served.
    """
    tell = on_progress or (lambda _: None)
    if kind == "local":
        from harness_actors.actors.local import LocalRuntime

        return await LocalRuntime.open(store, command)
    tell("starting the actors on Ray")
    # Loading Ray takes a second; whoever runs without it does not pay that.
    from harness_actors.actors.ray_runtime import RayRuntime

    return await RayRuntime.open(store, command, address)
