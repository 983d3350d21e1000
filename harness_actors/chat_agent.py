"""An agent: a model with instructions and tools, and what surrounds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_actors.compaction.strategies import check_own
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import ConfigError
from harness_actors.models.chain import Fallback, ModelChain
from harness_actors.outputs import OutputType
from harness_actors.policies import Approvals, Hooks
from harness_actors.policies.capabilities import checked_capabilities
from harness_actors.policies.middleware import as_chain
from harness_actors.ports import Agent, Model, Strategy, Summarizer, Tool
from harness_actors.subagents import (
    SubAgentSpec,
    as_specs,
    check_listed,
    check_specs,
    held_below,
    tools_of,
)

if TYPE_CHECKING:
    from harness_actors.contracts import TaskContract
    from harness_actors.contracts.customs import CustomPredicate
    from harness_actors.contracts.plain import Faults

ARTIFACT_READER = "read_artifact"
"""A tool that the harness adds where long results are kept, about which approvals may decide."""


@dataclass(frozen=True, kw_only=True)
class ChatAgent:
    """A model with instructions and tools.

    Args:
        models: In place of `model`: a chain, of which the next is asked where one does not
            answer. It becomes the `model`.
        fallback: When that is; None for `Fallback()`, which is where its provider failed.

    Attributes:
        model: Whatever answers a conversation; a `ModelChain` where `models` were given.
        instructions: The system prompt; empty for none.
        tools: What the model may call. `work_complete` is added by the harness where
            the run is to end by it.
        name: Shown to people.
        hooks: Functions that are asked, or told, at fixed points of a run: `Hooks`, functions by
            kind, an object whose methods are named by kinds, or several of these. None for none.
        middleware: What stands around tool calls and model calls, the outermost first; see
            `MiddlewareChain`.
        capabilities: What it may work with; tools that need more are not offered. None for all.
        approvals: Which calls a person must approve first. None for none.
        predicates: Functions by the names that `Custom` predicates of contracts have.
        judges: Models by the names that `ModelJudged` predicates have; the agent's own model judges
            under its own name, and where none is named.
        output_type: What its runs are to come to, as `HarnessResult.output`: a pydantic model, a
            dataclass, another type of which JSON has values, or a JSON schema. None for words.
        summarizer: Puts into few words what its model is no longer shown of long conversations;
            None for the one that asks no model.
        strategies: Say which messages make room where no summary does, each before the shipped one
            that does the same; `CompactionConfig.strategies` names those that are asked.
        sub_agents: Agents to which it can delegate, each by a tool of its name: `explore()` and the
            like of `harness_actors.subagents`, or a `SubAgentSpec`.

    Raises:
        ConfigError: Something else is given as one of these, two tools have one name, or nobody
            knows a capability.
    """

    model: Model = None  # type: ignore[assignment]
    instructions: str = ""
    tools: Sequence[Tool] = ()
    name: str = "agent"
    hooks: Any = None
    middleware: Sequence[Any] = ()
    capabilities: Sequence[str] | None = None
    approvals: Approvals | None = None
    predicates: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    judges: Mapping[str, Model] = field(default_factory=dict)
    output_type: Any = None
    summarizer: Summarizer | None = None
    strategies: Sequence[Strategy] = ()
    sub_agents: Sequence[SubAgentSpec] = ()
    models: InitVar[Sequence[Model] | None] = None
    fallback: InitVar[Fallback | None] = None

    def __post_init__(self, models: Sequence[Model] | None, fallback: Fallback | None) -> None:
        model = _one_model(self.model, models, fallback)
        object.__setattr__(self, "model", model)
        if not hasattr(self.model, "complete"):
            problem = f'must be a model such as OpenAIModel("gpt-4.1"), not {self.model!r}'
            raise ConfigError("model", problem)
        for tool in self.tools:
            if not hasattr(tool, "spec"):
                raise ConfigError("tools", f"{tool!r} is not a tool; decorate it with @tool")
        names = [tool.spec.name for tool in self.tools]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError("tools", f"two tools are named {name!r}")
        # A copy: what the caller does to the list later is not ours.
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "hooks", Hooks.given(self.hooks) or None)
        object.__setattr__(self, "middleware", as_chain(self.middleware).members)
        may = checked_capabilities(self.capabilities, self.tools)
        object.__setattr__(self, "capabilities", may)
        if self.approvals is not None and not isinstance(self.approvals, Approvals):
            raise ConfigError("approvals", f"must be Approvals(...), not {self.approvals!r}")
        self._check_named("predicates", "functions", callable)
        self._check_named("judges", "models", lambda one: hasattr(one, "complete"))
        object.__setattr__(self, "output_type", OutputType.of(self.output_type))
        if self.summarizer is not None and not callable(
            getattr(self.summarizer, "summarize", None)
        ):
            problem = f"must be one such as ChatClientSummarizer(model), not {self.summarizer!r}"
            raise ConfigError("summarizer", problem)
        object.__setattr__(self, "strategies", check_own(self.strategies))
        object.__setattr__(self, "sub_agents", as_specs(self.sub_agents, "sub_agents"))
        check_specs(self.sub_agents, names)
        if self.sub_agents:
            check_listed(self.sub_agents, self.tools)
        if self.approvals is not None:
            self.approvals.check_tools({*names, *tools_of(self.sub_agents), ARTIFACT_READER})
        customs = held_below(self, self.sub_agents)
        object.__setattr__(self, "predicates", {**self.predicates, **customs})

    def _check_named(self, name: str, what: str, is_one: Callable[[Any], bool]) -> None:
        given = getattr(self, name)
        if not isinstance(given, Mapping) or not all(map(is_one, given.values())):
            raise ConfigError(name, f"must be {what} by their names, not {given!r:.80}")
        object.__setattr__(self, name, dict(given))


def _one_model(
    model: Model | None, models: Sequence[Model] | None, fallback: Fallback | None
) -> Model | None:
    """The model of an agent, which may be a chain."""
    if models is None:
        if fallback is not None:
            raise ConfigError("fallback", "is for several models; give them as models=[…]")
        return model
    if model is not None:
        problem = "an agent has a model or models; give all of them, the preferred first, here"
        raise ConfigError("models", problem)
    chain = ModelChain(models, fallback)
    # Of one there is nothing to fall back to.
    return chain if len(chain.models) > 1 else chain.models[0]


def with_hooks(agent: Agent | Workflow, hooks: object) -> Agent | Workflow:
    """The same agent with further hooks, after its own.

    Args:
        agent: A `ChatAgent`, or a workflow around one.
        hooks: As of `ChatAgent`; None for no more.

    Raises:
        ConfigError: They are none, or the agent is of another class.
    """
    more = Hooks.given(hooks)
    if not more:
        return agent
    if isinstance(agent, Workflow):
        return replace(agent, agent=with_hooks(agent.agent, more))  # type: ignore[arg-type]
    if not isinstance(agent, ChatAgent):
        raise ConfigError("hooks", "an agent of your own class has its hooks as its own `hooks`")
    return replace(agent, hooks=(agent.hooks or Hooks()) + more)


def with_output_type(agent: Agent | Workflow, output_type: object) -> Agent | Workflow:
    """The same agent with another value that its runs are to come to.

    Args:
        agent: A `ChatAgent`, or a workflow around one.
        output_type: As of `ChatAgent`; None leaves its own.

    Raises:
        ConfigError: It is no type, or the agent is of another class.
    """
    output = OutputType.of(output_type)
    if output is None:
        return agent
    if isinstance(agent, Workflow):
        return replace(agent, agent=with_output_type(agent.agent, output))  # type: ignore[arg-type]
    if not isinstance(agent, ChatAgent):
        problem = "an agent of your own class has it as its own `output_type`"
        raise ConfigError("output_type", problem)
    return replace(agent, output_type=output)


def fitted(
    agent: Agent, contract: "TaskContract", *, has_workspace: bool, beside: Path | None
) -> "tuple[dict[str, CustomPredicate], Faults]":
    """The functions that a contract asks an agent for, and why no run of it could meet it.

    Args:
        agent: The agent.
        contract: The contract.
        has_workspace: Its runs work in a folder.
        beside: A folder whose modules are found as well, before all others.
    """
    from harness_actors.contracts.fitting import fit

    judges = {agent.model.name, *(getattr(agent, "judges", None) or {})}
    return fit(
        contract,
        predicates=getattr(agent, "predicates", None) or {},
        is_judge=judges.__contains__,
        has_workspace=has_workspace,
        # What one of the user's own class offers is known when it runs.
        tools={tool.spec.name for tool in agent.tools} if isinstance(agent, ChatAgent) else None,
        beside=beside,
    )
