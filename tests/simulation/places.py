"""Who is where, as the newest coordinator sees it: read from inside, for there is no other way."""

from typing import TYPE_CHECKING

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.simulated.cell import SimulatedHost, SimulatedPeer
from harness_actors.actors.simulated.network import SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.coordination.active import ActiveRun

if TYPE_CHECKING:
    from tests.simulation.ledger import Ledger


def seated_actors(host: CoordinatorHost) -> list[SimulatedActor]:
    """The actors that have a seat."""
    peers = [seat.peer for seat in host._seats._seats.values()]
    return [peer.actor for peer in peers if isinstance(peer, SimulatedPeer)]


def keepers_of(host: CoordinatorHost, run_id: str) -> list[SimulatedProcess]:
    """The living processes with a seat that have a run in memory."""
    alive = [actor for actor in seated_actors(host) if not actor.dead and not actor.process.gone]
    return [actor.process for actor in alive if _serves(actor, run_id)]


def _serves(actor: SimulatedActor, run_id: str) -> bool:
    host = actor.now.instance
    if not isinstance(host, SimulatedHost) or not isinstance(host.hosted, ExecutorHost):
        return False
    return run_id in host.hosted._runs


def seated(host: CoordinatorHost | None, process: SimulatedProcess) -> SimulatedActor | None:
    """The actor of a process; None where it has no seat, or one of an earlier term."""
    if host is None or process.term != host.term:
        return None
    return next((actor for actor in seated_actors(host) if actor.process is process), None)


def run_at(
    host: CoordinatorHost | None, process: SimulatedProcess, run_id: str
) -> ActiveRun | None:
    """The run as its coordinator has it, if it is at this process now."""
    if host is None or host.term != process.term:
        return None
    run = host._coordinator.runs.get(run_id)
    if run is None or run.slot is None:
        return None
    seat = host._seats._seats.get(run.slot)
    peer = None if seat is None else seat.peer
    return run if isinstance(peer, SimulatedPeer) and peer.actor.process is process else None


def is_here(ledger: "Ledger", run_id: str) -> bool:
    """Whether a run is at the process that asks: not one that had word of it long ago, or was
    called dead and lives on, whose work comes to nothing."""
    process = current_process()
    return process not in ledger.harmed and run_at(ledger.coordinator, process, run_id) is not None
