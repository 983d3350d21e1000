"""What agents below another one are held to: whether they can be."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_actors.errors import ConfigError
from harness_actors.subagents.child_agent import made_of, specs_of
from harness_actors.subagents.spec import SubAgentSpec

_NOBODY = (
    "it asks {question!r:.80}, and a child cannot wait before it begins: give it the answer, or "
    "let it stay open by `acceptability.max_known_unknowns`"
)


def held_below(
    agent: Any,
    specs: Sequence[SubAgentSpec],
    *,
    has_workspace: bool = True,
    beside: Path | None = None,
    where: str = "sub_agents",
) -> dict[str, Callable[..., Any]]:
    """The functions that contracts of agents below another one ask by name.

    Args:
        agent: The one that delegates.
        specs: To whom.
        has_workspace: Its runs work in a folder.
        beside: A folder whose modules are found as well, before all others.
        where: The field that has them, for errors.

    Raises:
        ConfigError: A contract asks for what no run of its agent could have; the field is that of
            the contract. Or one is to work in a copy of a folder that is not there.
    """
    found: dict[str, Callable[..., Any]] = {}
    for spec in specs:
        field = f"{where}.{spec.name}"
        _check_workspace(agent, spec, field, has_workspace)
        child = made_of(agent, spec)
        if spec.contract is not None:
            found |= _fitted(child, spec.contract, f"{field}.contract", has_workspace, beside)
        found |= held_below(
            child,
            specs_of(child),
            has_workspace=has_workspace,
            beside=beside,
            where=f"{field}.sub_agents",
        )
    return found


def check_held(agent: Any, *, has_workspace: bool) -> None:
    """Refuse an agent whose runs begin others that could not meet what they are held to.

    Args:
        agent: The agent.
        has_workspace: Its runs work in a folder.

    Raises:
        ConfigError: As of `held_below`; or it is of a class of its user's, and has not the
            functions that contracts ask by name.
    """
    asked = held_below(agent, specs_of(agent), has_workspace=has_workspace)
    # A `ChatAgent` has found them when it was made.
    if missing := sorted(asked.keys() - (getattr(agent, "predicates", None) or {})):
        problem = f"must have {missing[0]!r}, for which the contract of a sub-agent asks"
        raise ConfigError("predicates", problem)


def runs_code(contract: Mapping[str, Any] | None) -> bool:
    """Whether looking at a contract, given as plain values, runs what may write."""
    if contract is None:
        return False
    from harness_actors.contracts.leaves import CommandSucceeds, Custom
    from harness_actors.contracts.plain import contract_of
    from harness_actors.contracts.predicates import leaves

    asked = (leaves(output.predicate) for output in contract_of(contract).outputs)
    return any(isinstance(leaf, CommandSucceeds | Custom) for one in asked for leaf in one)


def _check_workspace(agent: Any, spec: SubAgentSpec, field: str, has_workspace: bool) -> None:
    if spec.workspace != "copy":
        return
    capabilities = getattr(agent, "capabilities", None)
    if capabilities is not None and "filesystem" not in capabilities:
        problem = "'copy' needs the capability 'filesystem', by which changes are brought back"
        raise ConfigError(f"{field}.workspace", f"{problem}; add it, or leave this out")
    if not has_workspace:
        problem = "'copy' is of a workspace, and the run has none; give it a folder to work in"
        raise ConfigError(f"{field}.workspace", problem)


def _fitted(
    child: Any, plain: Mapping[str, Any], field: str, has_workspace: bool, beside: Path | None
) -> Mapping[str, Callable[..., Any]]:
    # Here, as in `spec`: most agents have no contract.
    from harness_actors.contracts.fitting import fit
    from harness_actors.contracts.plain import contract_of

    contract = contract_of(plain)
    judges = {child.model.name, *child.judges}
    customs, faults = fit(
        contract,
        predicates=child.predicates,
        is_judge=judges.__contains__,
        has_workspace=has_workspace,
        tools={*(tool.spec.name for tool in child.tools), *(one.name for one in child.sub_agents)},
        beside=beside,
    )
    open_questions = [one for one in contract.questions if one.answer is None]
    if len(open_questions) > contract.acceptability.max_known_unknowns:
        faults.add("questions", _NOBODY.format(question=open_questions[0].question))
    if faults.found:
        raise ConfigError(field, "; ".join(faults.sentences()))
    return customs
