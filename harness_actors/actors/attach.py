"""Reaching the cell of a journal that another process has up."""

import asyncio
from pathlib import Path

from harness_actors.actors.processes import is_alive
from harness_actors.actors.runtime import Runtime
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader

COORDINATOR = "coordinator"


def coordinator_of(store: Path) -> ProcessMark | None:
    """The process that serves a journal's runs as an actor on this machine; None if none does."""
    marks = JournalReader(store).load_processes()
    return next((mark for mark in marks if mark.role == COORDINATOR and is_alive(mark)), None)


async def attach(store: Path, address: str | None = None) -> Runtime | None:
    """The cell that serves a journal now, for calls such as `stop`. No Ray is started.

    Closing what this returns would stop the cell for all, so leave it as it is.

    Args:
        store: The journal's file.
        address: Which Ray; None finds the one that the cell's coordinator lives in, which
            must be on this machine.

    Returns:
        None where no cell of this journal is up there.

    Raises:
        CellError: The Ray does not let us in.
    """
    if address in (None, "auto", "local"):
        mark = await asyncio.to_thread(coordinator_of, store)
        address = None if mark is None else _ray_of(mark)
    if address is None:
        return None
    # Loading Ray takes a second; whoever finds no cell does not pay that.
    from harness_actors.actors.ray_attach import attach_at

    return await attach_at(store, address)


def _ray_of(mark: ProcessMark) -> str | None:
    """The address of the Ray that a worker process belongs to, as its parent was told it."""
    try:
        stat = Path(f"/proc/{mark.pid}/stat").read_text()
        parent = stat[stat.rindex(")") + 2 :].split()[1]
        words = Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    option = b"--gcs-address="
    told = next((word for word in words if word.startswith(option)), None)
    return None if told is None else told.removeprefix(option).decode()
