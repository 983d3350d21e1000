"""The way of a run through its workflow, as it is on disk."""

from collections import Counter
from typing import TYPE_CHECKING

from harness_actors.coordination.graph import ENTRY, successor
from harness_actors.records import Hop
from harness_actors.signals import RepairTrigger
from harness_actors.state import AGENT_TURN, AWAITED, COMPACTION
from tests.simulation.disk import DiskRun
from tests.simulation.workflows import begun_of, visits_of

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

ALONG_EDGES = "runs go along the edges of their workflow"
COUNTED_ONCE = "what an executor answers is taken once"


def check_path(schedule: "Schedule", run: DiskRun) -> None:
    """A run has gone along its edges, and each answer of the user's own executors counts once."""
    run_id, broken = run.spec.run_id, schedule.ledger.broken
    at, answers = ENTRY, Counter[str]()
    for _, change in run.changes:
        if change.hop is None:
            continue
        begins = any(write.key == AWAITED.name and write.value for write in change.delta.writes)
        answered = "" if begins and change.hop.to == at else _answered(run, at, change.hop)
        if answered is None:
            broken(ALONG_EDGES, f"{run_id} goes from {at} to {change.hop.to}")
            return
        answers[answered] += 1
        at = change.hop.to
    for name in run.spec.custom:
        if name == COMPACTION and not run.spec.replaces_compaction:
            # Ours, with a strategy of the agent's own.
            continue
        visits = run.values.values.get(visits_of(name), 0)
        # The answer that ended the run has led nowhere.
        if not answers[name] <= visits <= answers[name] + (run.end is not None and at == name):
            text = f"{name} counts {visits} visits of {run_id}, which left it {answers[name]} times"
            broken(COUNTED_ONCE, text)
        begun = run.values.values.get(begun_of(name))
        steps = sum(s.run_id == run_id and s.what == name for s in schedule.ledger.steps)
        if begun is not None and not visits <= begun <= steps:
            text = f"{name} began {begun} of {steps} steps of {run_id}, and ended {visits}"
            broken(COUNTED_ONCE, text)


def _answered(run: DiskRun, at: str, hop: Hop) -> str | None:
    """Whose answer moved a run that was at an executor.

    Returns:
        Its name; empty where its process has died; None where there is no way.
    """
    edges = run.spec.edges
    if hop.to == successor(edges, at):
        return at
    lost = isinstance(hop.signal, RepairTrigger) and hop.signal.resumed
    if at in (AGENT_TURN, ENTRY) and hop.to == ENTRY and lost:
        return ""
    if at == AGENT_TURN and hop.to == ENTRY and AGENT_TURN not in run.spec.custom:
        return ""  # the window of its model was full, and room is made before it goes on
    if at == AGENT_TURN:
        # That it went back is written down with what it does next.
        return ENTRY if hop.to == successor(edges, ENTRY) else None
    return "" if hop.to == at else None
