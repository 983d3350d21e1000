"""What children of a schedule are held to: contracts and values, chosen by its seed."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from harness_actors.config import Limits
from harness_actors.contracts import RequiredOutput, TaskContract
from harness_actors.subagents import SubAgentSpec
from tests.simulation.contracts import predicate
from tests.simulation.valuing import DrawnOutput, Valuing
from tests.simulation.workload import Workload

HELD = 0.5
"""Share of the schedules with trees in which one of the agents is held to something."""
ENOUGH = Limits(model_calls=100)
"""For it must say more than once that it is done."""
BY_CONTRACT, BY_VALUE = 0.65, 0.65
"""Share of those by what: one of them at least."""


def hold_children(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, in which its agents' helper may be held to something."""
    chance = Random(f"{seed}/held children")
    if not workload.sub_agents or chance.random() >= HELD:
        return workload
    typed = chance.random() < BY_VALUE
    contract = _contract(chance) if not typed or chance.random() < BY_CONTRACT else None
    return replace(
        workload,
        sub_agents=_held(workload.sub_agents, contract, typed=typed),
        contracted=workload.contracted or contract is not None,
    )


def _contract(chance: Random) -> Any:
    # Each of its runs is held to the same: what is looked at is told apart by who looks.
    outputs = tuple(
        RequiredOutput(
            id=f"R{place}", description=f"what {place} is", predicate=predicate(chance, f"R{place}")
        )
        for place in range(chance.choice((1, 2)))
    )
    return TaskContract(goal="of a child", outputs=outputs)


def _held(specs: Sequence[SubAgentSpec], contract: Any, *, typed: bool) -> tuple[SubAgentSpec, ...]:
    """The same agents, at each depth, with a helper that is held to something, unless it is a fork,
    which has the type of the agent that it is a fork of."""
    held: dict[str, Any] = {"contract": contract, "limits": ENOUGH}
    if typed:
        held |= {"output_type": DrawnOutput(None), "max_words": None}
    return tuple(
        replace(
            one,
            sub_agents=_held(one.sub_agents, contract, typed=typed),
            **(held if one.name == "helper" and not one.fork else {}),
        )
        for one in specs
    )


def bound(specs: Sequence[SubAgentSpec], valuing: Valuing) -> tuple[SubAgentSpec, ...]:
    """Agents whose values somebody looks at."""
    return tuple(
        replace(
            one,
            sub_agents=bound(one.sub_agents, valuing),
            output_type=None if one.output_type is None else DrawnOutput(valuing),
        )
        for one in specs
    )


def spec_at(specs: Sequence[SubAgentSpec], path: str) -> SubAgentSpec:
    """The agent of a child, by the names on the way to it."""
    name, _, below = path.partition("/")
    (found,) = (one for one in specs if one.name == name)
    return spec_at(found.sub_agents, below) if below else found
