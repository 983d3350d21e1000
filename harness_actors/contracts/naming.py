"""The functions that `Custom` predicates name."""

from collections.abc import Mapping
from pathlib import Path

from harness_actors.contracts.contract import TaskContract
from harness_actors.contracts.customs import CustomPredicate
from harness_actors.contracts.leaves import (
    Custom,
)
from harness_actors.contracts.plain import Faults
from harness_actors.contracts.predicates import (
    leaves,
)
from harness_actors.errors import ConfigError
from harness_actors.tools import find_object


def find_customs(
    contract: TaskContract,
    registered: Mapping[str, CustomPredicate] | None = None,
    *,
    beside: Path | None = None,
) -> tuple[dict[str, CustomPredicate], Faults]:
    """The functions of a contract by their names, and what is wrong with others.

    Args:
        contract: The contract.
        registered: Functions by names of their own; all others are named ``module:function``.
        beside: A folder whose modules are found as well, before all others.
    """
    found: dict[str, CustomPredicate] = {}
    faults = Faults()
    for place, output in enumerate(contract.outputs):
        for leaf in leaves(output.predicate):
            if not isinstance(leaf, Custom) or leaf.name in found:
                continue
            try:
                found[leaf.name] = _found(leaf.name, registered or {}, beside)
            except ConfigError as error:
                faults.add(f"outputs[{place}].predicate", error.problem)
    return found, faults


def _found(
    name: str, registered: Mapping[str, CustomPredicate], beside: Path | None
) -> CustomPredicate:
    if name in registered:
        return registered[name]
    if ":" not in name:
        known = ", ".join(sorted(registered))
        there = f"there are {known}, and" if known else "name"
        problem = f"no predicate {name!r} is registered; {there} yours as module:function"
        raise ConfigError("custom", problem)
    function = find_object(name, beside=beside)
    if not callable(function):
        problem = "has no such function" if function is None else "is no function"
        raise ConfigError("custom", f"{name!r} {problem}")
    made: CustomPredicate = function
    return made
