"""The agent that a child runs, made of the one that delegates and of what that says of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_actors.errors import AgentCodeError, ConfigError
from harness_actors.ports import Agent, AskingTool, Model, Tool
from harness_actors.subagents.spec import SubAgentSpec

_OF_FILES = ("filesystem", "shell")
"""Capabilities that tools need which work on files."""


@dataclass(frozen=True, kw_only=True)
class ChildAgent:
    """An agent to which another one delegates, as it is run. It may do nothing that the other one
    may not: hooks, middleware, approvals and capabilities are that one's.

    Attributes:
        path: Names of the agents from the one that the user began to this one.
        is_fork: It goes on with the conversation of the other one, and delegates to nobody.
        shown: To whom the other one delegates, where this is a fork of it: what stands before the
            conversation in its requests is the same, tools that it may not call included.
    """

    model: Model
    instructions: str
    tools: Sequence[Tool]
    name: str
    path: tuple[str, ...]
    sub_agents: Sequence[SubAgentSpec] = ()
    hooks: Any = None
    middleware: Sequence[Any] = ()
    capabilities: Sequence[str] | None = None
    approvals: Any = None
    judges: Mapping[str, Model] = field(default_factory=dict)
    summarizer: Any = None
    predicates: Mapping[str, Any] = field(default_factory=dict)
    output_type: Any = None
    is_fork: bool = False
    shown: Sequence[SubAgentSpec] = ()


def agent_at(agent: Agent, path: str) -> ChildAgent:
    """The agent that a child runs.

    Args:
        agent: That of the run at the top of its tree.
        path: Names from there, with slashes between them.

    Raises:
        AgentCodeError: There is none of that name.
    """
    above: Any = agent
    for name in path.split("/"):
        spec = next((one for one in specs_of(above) if one.name == name), None)
        if spec is None:
            raise AgentCodeError(f"the sub-agent {path!r}", f"the agent {above.name!r} has none")
        above = made_of(above, spec)
    assert isinstance(above, ChildAgent), "a path has a name at least"
    return above


def made_of(above: Any, spec: SubAgentSpec) -> ChildAgent:
    """The agent that a child runs, of the one that delegates and of what that says of it."""
    return ChildAgent(
        model=spec.model or above.model,
        instructions=str(above.instructions) if spec.fork else spec.instructions,
        tools=tuple(tool for tool in above.tools if _may_have(spec, tool)),
        name=spec.name,
        path=(*getattr(above, "path", (above.name,)), spec.name),
        sub_agents=spec.sub_agents,
        hooks=getattr(above, "hooks", None),
        middleware=getattr(above, "middleware", None) or (),
        capabilities=getattr(above, "capabilities", None),
        approvals=getattr(above, "approvals", None),
        judges=getattr(above, "judges", None) or {},
        summarizer=getattr(above, "summarizer", None),
        predicates=getattr(above, "predicates", None) or {},
        output_type=spec.output_type,
        is_fork=spec.fork,
        shown=specs_of(above) if spec.fork else (),
    )


def _may_have(spec: SubAgentSpec, tool: Tool) -> bool:
    if spec.tools is not None and tool.spec.name not in spec.tools:
        return False
    if spec.workspace == "read_only" and writes_workspace(tool):
        return False
    # Nobody is asked by it: who delegates is there to be told.
    return not spec.reads_only or (
        tool.spec.effect == "read_only" and not isinstance(tool, AskingTool)
    )


def check_listed(
    specs: Sequence[SubAgentSpec], tools: Sequence[Tool], where: str = "sub_agents"
) -> None:
    """Refuse agents that list a tool which their other settings take away from them.

    Args:
        specs: The agents.
        tools: Those of the one that delegates.
        where: The field that has the agents, for errors.

    Raises:
        ConfigError: One does.
    """
    for spec in specs:
        kept = [tool for tool in tools if _may_have(spec, tool)]
        names = {tool.spec.name for tool in kept}
        if gone := [name for name in spec.tools or () if name not in names]:
            takes = "reads_only" if spec.reads_only else 'workspace="read_only"'
            problem = f"{gone[0]!r} is not for an agent with {takes}; leave one of them out"
            if gone[0] not in {tool.spec.name for tool in tools}:
                problem = f"{gone[0]!r} is no tool of the agent that delegates, which only reads"
            raise ConfigError(f"{where}.{spec.name}.tools", problem)
        check_listed(spec.sub_agents, kept, f"{where}.{spec.name}.sub_agents")


def writes_workspace(tool: Any) -> bool:
    """Whether a tool declares that it works on files, and does more than read."""
    needs = getattr(tool.spec, "needs", ())
    return tool.spec.effect != "read_only" and any(one in needs for one in _OF_FILES)


def specs_of(agent: Any) -> Sequence[SubAgentSpec]:
    """The agents to which one delegates; none where it says nothing of them."""
    return getattr(agent, "sub_agents", None) or ()


def shown_to(agent: Any) -> Sequence[SubAgentSpec]:
    """Those by which an agent is told that it can delegate: its own, or those of whom it is a fork
    of."""
    return getattr(agent, "shown", None) or specs_of(agent)


def models_below(agent: Any) -> Iterator[Model]:
    """The models of all agents below one, that they have of their own."""
    for spec in specs_of(agent):
        if spec.model is not None:
            yield spec.model
        yield from models_below(spec)
