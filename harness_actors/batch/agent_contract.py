"""The contract of an agent file: `persona.contract`, with the lines that it stands in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_actors.agents import ChatAgent, fitted
from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.batch.agent_file import LoadedAgent
    from harness_actors.contracts import TaskContract
    from harness_actors.contracts.plain import Faults

FIELD = "persona.contract"
_PLACE = re.compile(r"\.(\d+)")


@dataclass(frozen=True, kw_only=True)
class AgentContract:
    """What all runs of an agent must have come to.

    Attributes:
        path: The agent file.
        contract: The contract.
    """

    path: Path
    contract: "TaskContract"

    @property
    def plain(self) -> Mapping[str, Any]:
        """The contract as plain values."""
        return self.contract.as_plain()

    def put_to(self, agent: ChatAgent, beside: Path) -> ChatAgent:
        """The agent with the functions that the contract asks by name.

        Args:
            agent: The agent.
            beside: A folder whose modules are found as well, before all others.

        Raises:
            BadInputError: A function cannot be found, or the agent has no such judge.
        """
        customs, faults = fitted(agent, self.contract, has_workspace=True, beside=beside)
        _refuse(self.path, faults)
        return replace(agent, predicates={**agent.predicates, **customs}) if customs else agent


def contract_in(given: object, path: Path, section: str = FIELD) -> AgentContract | None:
    """The contract of an agent file; None where it has none.

    Args:
        given: What stands under `persona.contract`.
        path: The file, for the error.
        section: Where that stands in it.

    Raises:
        BadInputError: Something is wrong with it; names file, line and field of each fault.
    """
    if given is None:
        return None
    # Here, for it loads what checks schemas, which most agents do not need.
    from harness_actors.contracts.plain import read_contract

    contract, faults = read_contract(given)
    _refuse(path, faults, section)
    assert contract is not None, "it has no fault"
    return AgentContract(path=path, contract=contract)


def with_contract_file(loaded: "LoadedAgent", path: Path, *, has_workspace: bool) -> "LoadedAgent":
    """An agent whose runs are held to the contract of a file, in place of its own.

    Args:
        loaded: The agent.
        path: The contract, YAML or JSON; its functions are found beside it as well.
        has_workspace: The runs work in a folder.

    Raises:
        BadInputError: The contract cannot be read or is at fault, or no run of this agent could
            meet it; names file, line and field of each fault.
    """
    from harness_actors.contracts.document import load_contract

    read, beside = load_contract(path), path.resolve().parent
    customs, faults = fitted(
        loaded.innermost, read.contract, has_workspace=has_workspace, beside=beside
    )
    read.refuse(faults)
    if customs:
        agent = loaded.agent
        assert isinstance(agent, ChatAgent), "of a file or of flags"
        held = replace(agent, predicates={**agent.predicates, **customs})
        loaded = replace(loaded, agent=held)
    return replace(loaded, config=replace(loaded.config, contract=read.contract.as_plain()))


def _refuse(path: Path, faults: "Faults", section: str = FIELD) -> None:
    if not faults.found:
        return
    from harness_actors.contracts.document import lines_of

    lines, written = lines_of(path.read_text(encoding="utf-8")), _PLACE.sub(r"[\1]", section)
    # Sections of agent files have the places of lists as names.
    lines |= {
        section + field.removeprefix(written): line
        for field, line in lines.items()
        if field.startswith(written)
    }
    raise BadInputError(str(path), faults.below(section).sentences(lines))
