"""The agents of an agent file to which its agent delegates: `persona.sub_agents`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness_actors.batch.agent_contract import contract_in
from harness_actors.batch.agent_document import (
    ModelFields,
    ShippedAgentFields,
    SubAgentFields,
    read_aside,
    read_part,
    without_agents,
)
from harness_actors.batch.agent_output import output_of
from harness_actors.config import MOST_DEPTH, HarnessConfig, Limits
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.messages import MOST_LEVELS, is_too_deep
from harness_actors.ports import Model, Tool
from harness_actors.subagents import SHIPPED, SubAgentSpec
from harness_actors.subagents.spec import USUAL_LIMITS

FIELD = "persona.sub_agents"
MOST_AGENTS = 100
"""In one file: aliases of YAML make many of few."""


def sub_agents_of(
    given: object,
    tools: Mapping[str, Tool],
    make_model: Callable[[ModelFields, str], Model],
    path: Path,
    beside: Path,
) -> tuple[SubAgentSpec, ...]:
    """The agents to which the agent of a file delegates; none where it names none.

    Args:
        given: What the file says: names of shipped ones, and fields.
        tools: The tools of the agent, as the file names them.
        make_model: Makes a model of its fields, which stand in a section.
        path: The file.
        beside: Where paths and modules are looked for.

    Raises:
        BadInputError: A field is at fault.
        ConfigError: A model does not take a setting.
    """
    return () if given is None else _Reading(tools, make_model, path, beside).all_of(given, FIELD)


@dataclass(eq=False)
class _Reading:
    """Reads what one file says of them."""

    tools: Mapping[str, Tool]
    make_model: Callable[[ModelFields, str], Model]
    path: Path
    beside: Path
    _within: list[int] = field(default_factory=list, init=False)
    """Which values of the document are being read: an alias may stand in what it is of."""
    _count: int = field(default=0, init=False)

    def all_of(self, given: object, section: str) -> tuple[SubAgentSpec, ...]:
        if not isinstance(given, list):
            # Not the value: aliases make it as long as they like.
            problem = f"must be a list, such as [explore], not {type(given).__name__}"
            raise self._fault(section, problem)
        if id(given) in self._within:
            raise self._fault(section, "is a part of itself")
        if len(self._within) == MOST_DEPTH:
            raise self._fault(section, f"is nested deeper than {MOST_DEPTH} times")
        self._within.append(id(given))
        found = tuple(self._one(one, f"{section}.{at}") for at, one in enumerate(given))
        self._within.pop()
        return found

    def _one(self, given: object, section: str) -> SubAgentSpec:
        self._count += 1
        if self._count > MOST_AGENTS:
            raise self._fault(FIELD, f"there are more than {MOST_AGENTS} agents")
        if isinstance(given, Mapping) and is_too_deep(without_agents(given)):
            raise self._fault(section, f"is nested more than {MOST_LEVELS} levels deep")
        if isinstance(given, str) or (isinstance(given, Mapping) and "use" in given):
            return self._shipped({"use": given} if isinstance(given, str) else given, section)
        fields = read_part(given, SubAgentFields, section, self.path)
        below = (
            ()
            if fields.sub_agents is None
            else self.all_of(fields.sub_agents, f"{section}.sub_agents")
        )
        optional = {
            "completion": fields.completion,
            "max_words": fields.max_words,
            "workspace": fields.workspace,
        }
        contract = contract_in(fields.contract, self.path, f"{section}.contract")
        output = output_of(fields.output_type, self.beside, self.path, f"{section}.output_type")
        try:
            return SubAgentSpec(
                name=fields.name,
                description=fields.description,
                instructions=fields.instructions,
                model=self._model(fields.model, section),
                tools=None if fields.tools is None else self._named(fields.tools),
                reads_only=fields.reads_only,
                background=fields.background,
                fork=fields.fork,
                limits=self._limits(fields.limits, USUAL_LIMITS, section),
                contract=None if contract is None else contract.contract,
                output_type=output,
                sub_agents=below,
                **{name: value for name, value in optional.items() if value is not None},
            )
        except ConfigError as error:
            inside = error.field.removeprefix(f"sub_agents.{fields.name}").removeprefix(
                "sub_agents"
            )
            raise self._fault(f"{section}{inside}", error.problem) from error

    def _shipped(self, given: Mapping[str, Any], section: str) -> SubAgentSpec:
        """One of ours, with what a file may say of it."""
        fields = read_part(given, ShippedAgentFields, section, self.path)
        make = SHIPPED.get(fields.use)
        if make is None:
            known = f"there are {', '.join(SHIPPED)}; one of your own has a name and a description"
            raise self._fault(section, f"no shipped agent {fields.use!r:.80}; {known}")
        limits = None
        if fields.limits is not None:
            limits = self._limits(fields.limits, make().limits, section)
        model = self._model(fields.model, section)
        return make(model=model, limits=limits, background=fields.background)

    def _model(self, given: object, section: str) -> Model | None:
        if given is None:
            return None
        section = f"{section}.model"
        fields = read_aside(given, ModelFields, section, self.path)
        if fields.id is None:
            raise self._fault(section, "must have the id of a model")
        return self.make_model(fields, section)

    def _named(self, tools: Sequence[str]) -> tuple[str, ...]:
        """The names that models know, of tools as the file names them."""
        return tuple(self.tools[one].spec.name if one in self.tools else one for one in tools)

    def _limits(self, given: Mapping[str, Any] | None, usual: Limits, section: str) -> Limits:
        if given is None:
            return usual
        try:
            return HarnessConfig.from_mapping({"limits": {**asdict(usual), **given}}).limits
        except ConfigError as error:
            raise self._fault(f"{section}.{error.field}", error.problem) from error

    def _fault(self, section: str, problem: str) -> BadInputError:
        return BadInputError(str(self.path), (f"{section}: {problem}",))
