"""All that a seed chooses before anything happens: one plan upon the other."""

from tests.simulation.approvals import plan_approvals
from tests.simulation.artifacts import plan_artifacts
from tests.simulation.circling import plan_circles
from tests.simulation.contracts import plan_contracts
from tests.simulation.copying import plan_copies
from tests.simulation.gates import plan_gates
from tests.simulation.held import hold_children
from tests.simulation.pressing import plan_pressure
from tests.simulation.questions import plan_questions
from tests.simulation.sent_out import with_scouts
from tests.simulation.shelves import plan_shelves
from tests.simulation.summarizing import plan_summaries
from tests.simulation.talking_below import with_questions_below
from tests.simulation.trees import plan_trees
from tests.simulation.trying import plan_tries
from tests.simulation.valuing import plan_values
from tests.simulation.waves import plan_waves
from tests.simulation.working import plan_workers
from tests.simulation.workload import Workload, plan_workload


def planned(seed: int) -> Workload:
    """The workload of a seed. Each plan draws from a chance of its own."""
    workload = plan_waves(plan_questions(plan_workload(seed), seed), seed)
    workload = plan_workers(plan_artifacts(workload, seed), seed)
    workload = plan_gates(plan_tries(workload, seed), seed)
    workload = plan_circles(plan_approvals(workload, seed), seed)
    workload = plan_values(plan_contracts(workload, seed), seed)
    workload = plan_summaries(plan_pressure(workload, seed), seed)
    workload = with_questions_below(with_scouts(plan_trees(workload, seed), seed), seed)
    workload = hold_children(workload, seed)
    return plan_copies(plan_shelves(workload, seed), seed)
