"""Our executors, put together for the process that hosts them."""

import os
from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING

from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.hosted import Place
from harness_actors.actors.processes import COMPANION_ROLE, mark_of_this_process, this_node
from harness_actors.coordination.active import ExecutorNeeds
from harness_actors.coordination.protocol import Slot
from harness_actors.executors import AgentTurn, Compaction, Repair, StopDecision
from harness_actors.ports import Executor
from harness_actors.records import ProcessMark
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION, observed_by
from harness_actors.turn.services import RUN_VARIABLE, AgentTurnServices
from harness_actors.turn.threads import ToolThreads

if TYPE_CHECKING:
    from harness_actors.tools.supervision.client import SupervisedProcesses

TOOL_THREADS = 32
"""Blocking tools that one agent turn host runs at once; the others wait their turn."""

_CLASSES: Mapping[str, type[Repair | Compaction | AgentTurn | StopDecision]] = {
    REPAIR: Repair,
    COMPACTION: Compaction,
    AGENT_TURN: AgentTurn,
    STOP_DECISION: StopDecision,
}


def executor_needs() -> Mapping[str, ExecutorNeeds]:
    """What each of our executors is sent with a signal, by name."""
    return {
        name: ExecutorNeeds(
            keys=(*(key.name for key in kind.reads), observed_by(name)), log=kind.reads_log
        )
        for name, kind in _CLASSES.items()
    }


def host_executor(place: Place) -> ExecutorHost:
    """The host of the executor that a slot names."""
    if place.slot.code:
        # It comes in the run's own code.
        return ExecutorHost(None, place)
    if place.slot.executor == AGENT_TURN:
        return _agent_turn_host(place)
    return ExecutorHost(_executor_at(place), place)


def _executor_at(place: Place) -> Executor:
    match place.slot.executor:
        case "repair":
            from harness_actors.tools.reaping import RunReaper

            return Repair(RunReaper(RUN_VARIABLE).end_run)
        case "compaction":
            return Compaction()
        case "stop_decision":
            return StopDecision()
        case other:
            raise ValueError(f"no executor {other!r}")


def _agent_turn_host(place: Place) -> ExecutorHost:
    # Of the four, only this one's process needs them.
    from harness_actors.actors.host.tool_workers import tool_workers
    from harness_actors.models.tokens import counter_for
    from harness_actors.stores.artifacts import ArtifactFolder
    from harness_actors.stores.copies import copies_of
    from harness_actors.stores.key_files import KeyFiles
    from harness_actors.stores.key_locks import KeyLocks
    from harness_actors.tools.child_copy import changed_files
    from harness_actors.tools.open_resources import OpenResources
    from harness_actors.tools.standing import watch_workspace
    from harness_actors.tools.workspace import prepare_workspace

    resources = OpenResources()
    workers = None if place.tool_processes is None else tool_workers(place.tool_processes)
    services = AgentTurnServices(
        counter_for=counter_for,
        clock=place.clock,
        in_thread=ToolThreads(TOOL_THREADS).run,
        prepare_workspace=prepare_workspace,
        watch_workspace=watch_workspace,
        processes=place.tool_processes,
        resources=resources,
        workers=workers,
        artifacts_of=None if place.store is None else ArtifactFolder(place.store).of,
        locks=None if place.store is None else KeyLocks(KeyFiles(place.store)),
        copies=None if place.store is None else copies_of(place.store),
        changed_files=changed_files,
    )
    closed_with_it = [resources.close] if workers is None else [resources.close, workers.close]
    return ExecutorHost(AgentTurn(services), place, opened=closed_with_it)


def supervised_processes(*, own_process: bool, carried: int | None = None) -> "SupervisedProcesses":
    """What starts the processes of tools.

    Args:
        own_process: Its host has this process to itself. Then the supervisor is started at
            once, and what the host starts past it, as a tool does with `subprocess`, ends
            with this process, too.
        carried: The mark of the journal that it serves, for the supervisor; see `carrying`.
    """
    from harness_actors.tools.supervision.client import SupervisedProcesses
    from harness_actors.tools.supervision.launch import ACTOR_VARIABLE

    if not own_process:
        return SupervisedProcesses()
    os.environ[ACTOR_VARIABLE] = mark = token_hex(8)
    processes = SupervisedProcesses(mark=mark, detached=True, carried=carried)
    processes.supervisor()
    return processes


def marks_of_host(
    slot: Slot, processes: "SupervisedProcesses | None" = None
) -> tuple[ProcessMark, ...]:
    """The processes of the actor in a slot, which is asked in its own: that one first.

    All must be gone before what it did goes on elsewhere; the others end by themselves with it.
    """
    own = mark_of_this_process(str(slot))
    supervisor = None if processes is None else processes.supervisor()
    if supervisor is None:
        return (own,)
    companion = ProcessMark(
        role=COMPANION_ROLE + str(slot),
        node=this_node(),
        pid=supervisor.pid,
        started=supervisor.started,
    )
    return (own, companion)
