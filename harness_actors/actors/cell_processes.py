"""Which processes of this machine serve a journal, and on which Ray."""

import socket
from pathlib import Path

from harness_actors.actors.joining.trust import is_our_process
from harness_actors.actors.processes import carriers_among
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader

COORDINATOR = "coordinator"


def processes_of(store: Path) -> list[ProcessMark]:
    """The processes of cells that a journal knows and that serve it, on this machine.

    The oldest first; none where it is not made.
    """
    if not store.exists() or not store.stat().st_size:
        return []
    return _serving(JournalReader(store))


def _serving(journal: JournalReader) -> list[ProcessMark]:
    return carriers_among(journal.load_processes(), journal.path)


def coordinators_of(store: Path) -> list[ProcessMark]:
    """The processes that serve a journal's runs as an actor on this machine."""
    return [mark for mark in processes_of(store) if mark.role == COORDINATOR]


def coordinator_of(store: Path) -> ProcessMark | None:
    """The process that serves a journal's runs as an actor on this machine; None if none does."""
    return next(iter(coordinators_of(store)), None)


def has_coordinator(journal: JournalReader) -> bool:
    """Whether a process serves, as an actor on this machine, the runs of a journal that is read."""
    return any(mark.role == COORDINATOR for mark in _serving(journal))


def is_served(store: Path) -> bool:
    """Whether a cell serves a journal, perhaps one that outlived its command."""
    return coordinator_of(store) is not None


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


def is_listened_at(address: str) -> bool:
    """Somebody listens at ``HOST:PORT``; the head of a Ray does for as long as it lives."""
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
        # Ray names its workers so, with the method that they are in after it.
        if title.startswith(b"ray::RayCoordinator"):
            mark = ProcessMark(role=COORDINATOR, node="", pid=int(entry.parent.name), started=0)
            found.add(ray_of(mark))
    return {address for address in found if address is not None}
