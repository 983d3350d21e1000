"""Whether an agent can be held to a contract: its functions, its judges, its workspace."""

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from harness_actors.contracts.contract import TaskContract
from harness_actors.contracts.customs import CustomPredicate
from harness_actors.contracts.leaves import (
    CommandSucceeds,
    ContainsText,
    FileExists,
    JsonSchemaValid,
    Leaf,
    ModelJudged,
    ToolResultSuccess,
)
from harness_actors.contracts.naming import find_customs
from harness_actors.contracts.plain import Faults
from harness_actors.contracts.predicates import leaves

ALWAYS_OFFERED = ("work_complete", "read_artifact")
"""Tools that a run may have beside those of its agent."""


def fit(
    contract: TaskContract,
    *,
    predicates: Mapping[str, CustomPredicate],
    is_judge: Callable[[str], bool],
    has_workspace: bool,
    tools: Collection[str] | None = None,
    beside: Path | None = None,
) -> tuple[dict[str, CustomPredicate], Faults]:
    """The functions that a contract asks by name, and what keeps a run from meeting it.

    Args:
        contract: The contract.
        predicates: Functions of the agent, by names of their own.
        is_judge: Whether a model of this name judges.
        has_workspace: The run works in a folder.
        tools: Names of the agent's tools; None where nobody knows them.
        beside: A folder whose modules are found as well, before all others.
    """
    customs, faults = find_customs(contract, predicates, beside=beside)
    for place, leaf in _leaves(contract):
        at = f"outputs[{place}].predicate"
        if isinstance(leaf, ModelJudged) and leaf.model is not None and not is_judge(leaf.model):
            faults.add(at, f"no judge is named {leaf.model!r}; give the agent one in `judges`")
        if isinstance(leaf, ToolResultSuccess) and tools is not None:
            known = sorted({*tools, *ALWAYS_OFFERED})
            if leaf.tool_name not in known:
                near = get_close_matches(leaf.tool_name, known, 3)
                there = f"the nearest are {', '.join(near)}" if near else f"it has {_some(known)}"
                faults.add(at, f"the agent has no tool {leaf.tool_name!r}; {there}")
        if not has_workspace and _needs_workspace(leaf):
            faults.add(at, f"{leaf}: the run has no workspace in which that could be seen")
    return customs, faults


def _some(names: list[str]) -> str:
    more = len(names) - 10
    return ", ".join(names[:10]) + (f" and {more} more" if more > 0 else "")


def _leaves(contract: TaskContract) -> Iterator[tuple[int, Leaf]]:
    for place, output in enumerate(contract.outputs):
        for leaf in leaves(output.predicate):
            yield place, leaf


def _needs_workspace(leaf: Leaf) -> bool:
    match leaf:
        case FileExists() | CommandSucceeds():
            return True
        case ContainsText() | JsonSchemaValid():
            return leaf.file is not None
        case ModelJudged():
            return bool(leaf.files)
    return False
