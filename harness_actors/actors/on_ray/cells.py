"""The cells of the Ray that this process is connected to: started, and ended."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
import ray._private.worker  # see `is_own_ray`
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError

from harness_actors.actors.cell_calls import CellCalls
from harness_actors.actors.cell_key import cell_name
from harness_actors.actors.cell_lifetime import GoneError
from harness_actors.actors.cell_processes import COORDINATOR, processes_of
from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.liveness import SUSPECT_S
from harness_actors.actors.on_ray.calls import AwayError, CoordinatorCalls
from harness_actors.actors.on_ray.coordinator import RayCoordinatorActor
from harness_actors.actors.on_ray.known_cells import KnownCell, describe_cell, list_cells
from harness_actors.actors.on_ray.placement import (
    clear_name,
    cores_of,
    node_of_driver,
    on_node,
)
from harness_actors.actors.processes import end_processes, mark_of, wait_until_gone
from harness_actors.actors.retiring import in_use
from harness_actors.actors.runtime import StopMode
from harness_actors.errors import CellError
from harness_actors.records import ProcessMark
from harness_actors.stores.home import home
from harness_actors.stores.standing import FileId

LEAVES_WITHIN_S = 20.0


def is_own_ray() -> bool:
    """Whether this process has started the Ray that it is connected to: they end together."""
    # Nothing public tells a Ray that was started from one that was joined.
    node: Any = ray._private.worker._global_node
    return node is not None and bool(node.is_head())


def start_cell(
    store: Path, file: FileId, command: str, idle_s: float | None, warm_cells: int
) -> "ActorHandle[Any]":
    """Begin to start the cell of a journal, in the place of one that is of no use.

    Args:
        store: The journal.
        file: Which file that is, for all incarnations of the coordinator.
        command: Who owns the runs of this cell.
        idle_s: For how long it may have nothing to do; None for ever.
        warm_cells: How many newer cells there may be for it to stay while it is idle.
    """
    node = node_of_driver()
    name = cell_name(store)
    clear_name(name, time.sleep)
    options = {
        "name": name,
        "namespace": NAMESPACE,
        # It must outlive a driver that dies, to finish what is in flight; and it is the
        # one actor that Ray restarts: its children die with it, and it starts them anew.
        "lifetime": "detached",
        "max_restarts": -1,
        **on_node(node),
    }
    agent_turns = max(1, cores_of(node) // 2)
    actor: Any = RayCoordinatorActor.options(**options)
    stays = {"idle_s": idle_s, "warm_cells": warm_cells}
    handle: ActorHandle[Any] = actor.remote(
        str(store), command, node, agent_turns, home=str(home().resolve()), file=file, **stays
    )
    return handle


async def retire_others(store: Path, own: KnownCell | None) -> None:
    """End the idle cells that serve a journal on this Ray for other commands than ours.

    Args:
        store: The journal's file, an absolute path.
        own: Ours, if there is one.

    Raises:
        StoreInUseError: One of them has runs in progress.
    """
    spared = None if own is None else own.name
    cells = await asyncio.to_thread(list_cells)
    for cell in (cell for cell in cells if cell.store == store and cell.name != spared):
        if in_progress := await retire(cell):
            raise in_use(store, cell.pid, in_progress)


async def put_aside(cell: KnownCell, run_ids: Sequence[str], mode: StopMode) -> None:
    """Ask runs of a cell to stop; it may be gone before they did."""
    with suppress(AwayError, GoneError):
        await CoordinatorCalls(cell.coordinator).once(CellCalls.stop, run_ids, mode)


async def end(cell: KnownCell) -> None:
    """End a cell, whatever it does; what it had in progress can be taken up again.

    Raises:
        CellError: Its processes do not end.
    """
    marks = await asyncio.to_thread(processes_of, cell.store)
    await asyncio.to_thread(ray.kill, cell.coordinator, no_restart=True)
    await _see_gone(cell, marks)


async def _see_gone(cell: KnownCell, marks: Sequence[ProcessMark]) -> None:
    left = await asyncio.to_thread(end_processes, marks, timeout_s=LEAVES_WITHIN_S)
    if left:
        pids = ", ".join(str(mark.pid) for mark in left)
        raise CellError(str(cell.store), f"processes of its cell do not end: {pids}")


async def retire(cell: KnownCell, *, answers_within_s: float = SUSPECT_S) -> int:
    """End a cell that has no run in progress, and see its processes gone.

    One that does not answer is killed: the next command goes on with its runs.

    Returns:
        How many runs are in progress, for which it was left as it is; 0 where it is gone.

    Raises:
        CellError: Its processes do not end.
    """
    # Known before it goes: whoever serves the journal next has other processes. One whose
    # journal was taken away is known to itself alone.
    facts = asyncio.ensure_future(describe_cell(cell, answers_within_s=answers_within_s))
    marks = await asyncio.to_thread(processes_of, cell.store)
    serving = mark_of(cell.pid, COORDINATOR) if cell.pid else None
    coordinator: Any = cell.coordinator
    try:
        async with asyncio.timeout(answers_within_s):
            in_progress = int(await coordinator.retire.remote())
    except (TimeoutError, RayActorError):
        await asyncio.to_thread(ray.kill, coordinator, no_restart=True)
    except RayError as error:
        # Of a version that cannot be asked.
        problem = str(error).strip().splitlines()[-1]
        raise CellError(str(cell.store), f"its cell does not leave: {problem}") from None
    else:
        if in_progress:
            facts.cancel()
            return in_progress
        if serving is not None:
            await asyncio.to_thread(wait_until_gone, serving, timeout_s=LEAVES_WITHIN_S)
    told = await facts
    marks += [] if told is None else told.processes
    marks += [] if serving is None else [serving]
    await _see_gone(cell, marks)
    return 0
