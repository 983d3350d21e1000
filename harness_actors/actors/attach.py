"""Reaching the cell of a journal that another process has up, or has left behind."""

import asyncio
import json
import socket
import sys
from collections.abc import Collection
from pathlib import Path

from harness_actors.actors.joining.trust import is_our_process
from harness_actors.actors.processes import carriers_among
from harness_actors.actors.runtime import Runtime
from harness_actors.errors import StoreInUseError
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader

COORDINATOR = "coordinator"
LEAVES_WITHIN_S = 90.0


def processes_of(store: Path) -> list[ProcessMark]:
    """The processes of cells that a journal knows and that serve it, on this machine.

    The oldest first; none where it is not made.
    """
    if not store.exists() or not store.stat().st_size:
        return []
    return carriers_among(JournalReader(store).load_processes(), store)


def coordinators_of(store: Path) -> list[ProcessMark]:
    """The processes that serve a journal's runs as an actor on this machine."""
    return [mark for mark in processes_of(store) if mark.role == COORDINATOR]


def coordinator_of(store: Path) -> ProcessMark | None:
    """The process that serves a journal's runs as an actor on this machine; None if none does."""
    return next(iter(coordinators_of(store)), None)


def is_served(store: Path) -> bool:
    """Whether a cell serves a journal, perhaps one that outlived its command."""
    return coordinator_of(store) is not None


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
    is_named = address not in (None, "auto", "local")
    if not is_named:
        mark = await asyncio.to_thread(coordinator_of, store)
        address = None if mark is None else ray_of(mark)
    if address is None:
        return None
    # Loading Ray takes a second; whoever finds no cell does not pay that.
    from harness_actors.actors.on_ray.attach import attach_at

    return await attach_at(store, address, is_named=is_named)


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
        if address is not None and await asyncio.to_thread(_answers, address):
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


def ray_of(mark: ProcessMark) -> str | None:
    """The address of the Ray that a worker process belongs to, as its parent was told it.

    None where they are neither this user's nor root's: a title says what its process likes.
    """
    if not is_our_process(mark.pid):
        return None
    try:
        stat = Path(f"/proc/{mark.pid}/stat").read_text()
        parent = stat[stat.rindex(")") + 2 :].split()[1]
        if not is_our_process(int(parent)):
            return None
        words = Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    option = b"--gcs-address="
    told = next((word for word in words if word.startswith(option)), None)
    return None if told is None else told.removeprefix(option).decode()


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except (OSError, ValueError):
        return False


def rays_with_cells() -> set[str]:
    """The addresses of the Rays that have the coordinator of a cell on this machine."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            title = entry.read_bytes()
        except OSError:
            continue  # it ended meanwhile
        # Ray names its workers so, with the method that they are in behind it.
        if title.startswith(b"ray::RayCoordinator"):
            mark = ProcessMark(role=COORDINATOR, node="", pid=int(entry.parent.name), started=0)
            found.add(ray_of(mark))
    return {address for address in found if address is not None}
