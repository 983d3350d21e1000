"""Gates of a schedule's agents: which they have, chosen by its seed."""

from dataclasses import replace
from random import Random
from typing import Any

from harness_actors.policies import Hooks
from tests.simulation.contracts import predicates_of
from tests.simulation.oracle import Oracle
from tests.simulation.questions import ASKS
from tests.simulation.valuing import DrawnOutput
from tests.simulation.workload import PlannedRun, Workload

MOODY = 0.5
"""Share of the schedules with hooks around calls in which these also fail."""
LIMITED = 0.5
"""Share of those in which agents may not use all of their tools."""
GUARDED = 0.15
PASSED = 0.15


def plan_gates(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with the gates of its agents, beside those that it has."""
    chance = Random(f"{seed}/gates")
    moody = chance.random() < MOODY and workload.judged
    limited = chance.random() < LIMITED and moody
    guarded, passed = chance.random() < GUARDED, chance.random() < PASSED
    runs = dict(workload.runs)
    if moody:
        runs = {name: _asking_nobody(run) for name, run in runs.items()}
    return replace(
        workload, runs=runs, moody=moody, limited=limited, guarded=guarded, passed=passed
    )


def _asking_nobody(run: PlannedRun) -> PlannedRun:
    """The run; nobody is asked what its hooks want to know where its model asks nothing."""
    if any(call.kind in ASKS for planned in run.rounds for call in planned.calls):
        return run
    return replace(run, config=replace(run.config, on_question="deny"))


def gates_of(workload: Workload, oracle: Oracle) -> dict[str, Any]:
    """Hooks, middleware and capabilities of the agents of a workload, by their names."""
    hooks = Hooks()
    if workload.judged:
        asks_nobody = frozenset(
            name for name, run in workload.runs.items() if run.config.on_question == "deny"
        )
        hooks += oracle.judging.hooks(moody=workload.moody, asks_nobody=asks_nobody)
    if workload.guarded:
        hooks += oracle.guarding.hooks()
    if workload.rounds_judged:
        hooks += oracle.circling.hooks()
    return {
        "hooks": hooks or None,
        "middleware": oracle.passing.middleware() if workload.passed else (),
        "approvals": workload.approvals,
        "predicates": predicates_of(oracle.verifying) if workload.contracted else {},
        "output_type": DrawnOutput(oracle.valuing) if workload.typed else None,
        "capabilities": oracle.judging.capabilities(limited=workload.limited),
    }
