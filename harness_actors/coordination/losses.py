"""What becomes of runs whose host died under them."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import executor_lost, executor_missing
from harness_actors.coordination.graph import ENTRY
from harness_actors.coordination.protocol import QUARANTINE, Slot
from harness_actors.coordination.routing import LOSSES_BEFORE_FAILURE
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.events import ExecutorLost
from harness_actors.records import Hop
from harness_actors.signals import RepairTrigger
from harness_actors.state import AGENT_TURN, StateDelta


@dataclass(eq=False)
class Losses:
    """Lets runs go on in the next host, and ends one that keeps killing its own.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what becomes of them.
        dispatch: Brings them to the next host.
    """

    _runs: Mapping[str, ActiveRun]
    _changes: RunChanges
    _dispatch: Dispatch

    def host_lost(self, slot: Slot, cause: str) -> Effects:
        """See `Coordinator.host_lost`."""
        effects = Effects()
        for run in self._runs.values():
            run.replicas.pop(slot, None)
        # Listed first: one that leaves the quarantine host lets the next one in.
        for run in [run for run in self._runs.values() if run.slot == slot]:
            self._lost(run, slot, cause, effects)
        return effects

    def host_missing(self, slot: Slot, cause: str, effects: Effects) -> None:
        """See `Coordinator.host_missing`: the runs that it was to serve end."""
        for run in [run for run in self._runs.values() if run.slot == slot]:
            self._changes.end(run, StateDelta(), executor_missing(slot, cause), effects)

    def _lost(self, run: ActiveRun, slot: Slot, cause: str, effects: Effects) -> None:
        self._dispatch.leave(run, effects)
        theirs = bool(slot.code) or run.busy_since is not None
        if theirs:
            run.losses += 1
            tools = () if slot.code else run.tools
            lost = ExecutorLost(executor=str(slot), losses=run.losses, cause=cause, tools=tools)
            delta = StateDelta(events=(lost,))
            alone = slot.index == QUARANTINE or bool(slot.code)
            if run.losses >= LOSSES_BEFORE_FAILURE and alone:
                end = executor_lost(slot, run.losses, tools, cause)
                self._changes.end(run, delta, end, effects)
                return
            retrace(run)
            self._changes.change(run, delta, effects, moved=True)
        else:
            retrace(run)
        self._dispatch.deliver(run, effects)


def left_by(runs: Mapping[str, ActiveRun], slot: Slot) -> list[str]:
    """Runs that the agent turn in a slot has served, and that stand between two turns now.

    Repair is not to come for them, if that agent turn dies.
    """
    return [
        run_id
        for run_id, run in runs.items()
        if slot in run.replicas and (run.slot is None or run.slot.kind != AGENT_TURN)
    ]


def retrace(run: ActiveRun) -> None:
    """Lead a run to repair where a turn may have been under way when its host died.

    It may have calls whose outcome nobody knows.
    """
    if run.hop.to == AGENT_TURN:
        run.hop = Hop(to=ENTRY, signal=RepairTrigger(resumed=True))
