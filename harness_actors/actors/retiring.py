"""Stopping the idle cells that other Rays have for a journal, by whoever needs it for itself."""

import asyncio
import json
import sys
from collections.abc import Collection
from pathlib import Path

from harness_actors.actors.cell_processes import coordinators_of, is_listened_at, ray_of
from harness_actors.errors import StoreInUseError
from harness_actors.records import ProcessMark

LEAVES_WITHIN_S = 90.0


async def make_way(store: Path, *, spare: Collection[ProcessMark] = ()) -> None:
    """Stop the idle cells that other Rays of this machine have for a journal.

    Two that serve one journal would fence each other off.

    Args:
        store: The journal's file.
        spare: Coordinators that may stay.

    Raises:
        StoreInUseError: Runs are in progress there, or it cannot be reached.
    """
    for mark in await asyncio.to_thread(coordinators_of, store):
        address = None if mark in spare else ray_of(mark)
        # Without its Ray it ends by itself, and whoever serves next waits for that.
        if address is not None and await asyncio.to_thread(is_listened_at, address):
            in_progress = await _retired(store, address, mark)
            if in_progress:
                raise in_use(store, mark.pid, in_progress)


def in_use(store: Path, pid: int, in_progress: int) -> StoreInUseError:
    """Runs are in progress that another process serves."""
    runs = "1 run is" if in_progress == 1 else f"{in_progress} runs are"
    problem = (
        f"{runs} in progress in the cell of process {pid}; wait, or stop it with "
        f"`harness ctl cell stop {store}`"
    )
    return StoreInUseError(str(store), problem)


async def _retired(store: Path, address: str, mark: ProcessMark) -> int:
    """Ask the cell of a journal to leave; returns how many runs keep it from that."""
    # In a process of its own: this one is perhaps connected to another Ray, or to none.
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "harness_actors.actors.on_ray.leave", str(store), address),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(LEAVES_WITHIN_S):
            said, _ = await asking.communicate()
        answer = json.loads(said)
    except (TimeoutError, ValueError):
        answer = {"problem": "it does not leave"}
    finally:
        if asking.returncode is None:
            asking.kill()
            await asking.wait()
    if answer["problem"]:
        problem = (
            f"its cell in process {mark.pid}, on Ray at {address}, cannot be stopped "
            f"({answer['problem']}); stop it with `harness ctl cell stop {store}`"
        )
        raise StoreInUseError(str(store), problem)
    return int(answer["in_progress"])
