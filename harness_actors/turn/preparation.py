"""An agent made ready for requests: its prompt and tools encoded once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from harness_actors.config import HarnessConfig
from harness_actors.errors import ConfigError
from harness_actors.messages import Message
from harness_actors.outputs import OutputType
from harness_actors.policies import Approvals, Hooks, MiddlewareChain, offered_tools
from harness_actors.policies.middleware import as_chain
from harness_actors.ports import (
    Agent,
    DelegatingTool,
    StrictForm,
    TokenCounter,
    Tool,
    ToolSet,
    ToolSpec,
)
from harness_actors.turn.around import AroundTools
from harness_actors.turn.texts import counted, well_formed

READ_ARTIFACT = "read_artifact"


@dataclass(frozen=True, kw_only=True)
class PreparedAgent:
    """An agent made ready for requests.

    Attributes:
        agent: The agent, which stays as it is.
        counter: Counts tokens as its model does.
        head: The system prompt; empty where the agent has no instructions.
        tools: What the model may call, `work_complete` included where a run ends by it, and
            `read_artifact` where long results are kept or not all of a conversation is shown.
        by_name: The same tools by name.
        completion: The tool by which a run ends; None where an answer ends it.
        overhead_tokens: Tokens of prompt and tools, a part of every request.
        hooks: Those of the agent.
        middleware: That of the agent.
        approvals: Which of its calls a person must approve; None for none.
        output: What its runs are to come to; None where words are enough.
        strict: What providers are sent that can hold their models to that; None for nothing.
        delegates: It has others to delegate to.
    """

    agent: Agent
    counter: TokenCounter
    head: tuple[Message, ...]
    tools: ToolSet
    by_name: Mapping[str, Tool]
    completion: Tool | None
    overhead_tokens: int
    hooks: Hooks = field(default_factory=Hooks)
    middleware: MiddlewareChain = field(default_factory=MiddlewareChain)
    approvals: Approvals | None = None
    output: OutputType | None = None
    strict: StrictForm | None = None
    delegates: bool = False

    @property
    def agent_path(self) -> tuple[str, ...]:
        """Names of the agents from the one that the user began to this one."""
        path: tuple[str, ...] = getattr(self.agent, "path", (self.agent.name,))
        return path

    @cached_property
    def around(self) -> AroundTools | None:
        """What stands around its tools; None for nothing."""
        if not self.middleware.around_tools:
            return None
        return AroundTools(self.middleware, self.agent_path)

    @cached_property
    def polled(self) -> frozenset[str]:
        """Names of its tools that are meant to be asked again and again."""
        return frozenset(name for name, tool in self.by_name.items() if _is_polled(tool.spec))

    @property
    def counts_tools(self) -> bool:
        """Whether somebody is told how often each tool was called."""
        counting = any(hasattr(member, "counts_tools") for member in self.middleware.members)
        return counting or bool(self.hooks.agent_stop)


def _is_polled(spec: ToolSpec) -> bool:
    return spec.volatile if spec.polled is None else spec.polled


async def prepare(
    agent: Agent,
    config: HarnessConfig,
    counter: TokenCounter,
    *,
    reads_back: bool = False,
    depth: int = 0,
) -> PreparedAgent:
    """Make an agent ready for requests.

    Args:
        agent: The agent.
        config: Settings of its run.
        counter: Counts tokens as its model does.
        reads_back: Its model is not shown all of the conversation, and may ask for parts of it.
        depth: How many runs stand above its run.

    Raises:
        ConfigError: Two tools have one name, or one has that of a tool of the harness; what is to
            approve of calls is no policy; or what runs are to come to is no type.
    """
    approvals = getattr(agent, "approvals", None)
    if approvals is not None and not isinstance(approvals, Approvals):
        raise ConfigError("approvals", f"must be Approvals(...), not {approvals!r:.80}")
    hooks = Hooks.given(getattr(agent, "hooks", None))
    checked = bool(hooks.agent_stop or hooks.output_guard) or config.contract is not None
    # Ours come last, and from the first request on: the tools are a part of every one.
    offered = offered_tools(agent)
    delegating = _delegating_tools(agent, config, depth)
    own = [*delegating, *([] if config.artifacts is None else [_artifact_reader()])]
    output = OutputType.of(getattr(agent, "output_type", None))
    explicit = config.completion == "explicit"
    ending = _completion_tool(output, checked=checked) if explicit else None
    own += [] if ending is None else [ending]
    tools = [*offered, *own]
    by_name: dict[str, Tool] = {}
    for tool in tools:
        name = tool.spec.name
        if name in by_name:
            raise ConfigError(
                "tools",
                f"two tools are named {name!r}"
                + ("; the harness adds this one itself, rename yours" if tool in own else ""),
            )
        by_name[name] = tool
    tool_set = ToolSet.of(tool.spec for tool in tools)
    counts = tool_set.encoded if tools else b""
    if reads_back and READ_ARTIFACT not in by_name:
        # Not counted: its provider counts it, which corrects what is added up. A tool of that name
        # is the user's own.
        by_name[READ_ARTIFACT] = reader = _artifact_reader()
        tool_set = ToolSet.of((*tool_set.specs, reader.spec))
    head: tuple[Message, ...] = ()
    strict = None if output is None else _strict_form(output, agent, tool_set, ending)
    asked = "" if output is None or explicit else output.prompt(agent.model)
    guidance = _guidance(agent) if delegating else ""
    if words := "\n\n".join(filter(None, (agent.instructions, guidance, asked))):
        head = (await counted(Message.system(well_formed(words)), counter),)
    overhead = sum(message.tokens for message in head)
    overhead += await counter.count(counts.decode()) if counts else 0
    if strict is not None and strict.response_format is not None:
        overhead += await counter.count(strict.response_format.decode())
    return PreparedAgent(
        agent=agent,
        counter=counter,
        head=head,
        tools=tool_set,
        by_name=by_name,
        completion=ending,
        overhead_tokens=overhead,
        hooks=hooks,
        middleware=as_chain(getattr(agent, "middleware", None)),
        approvals=approvals,
        output=output,
        strict=strict,
        delegates=any(isinstance(tool, DelegatingTool) for tool in tools),
    )


def may_delegate(agent: Agent, config: HarnessConfig, depth: int) -> bool:
    """Whether an agent is offered others to delegate to, in a run below so many others."""
    settings = config.sub_agents
    has_some = bool(getattr(agent, "sub_agents", None) or getattr(agent, "shown", None))
    above = depth - getattr(agent, "is_fork", False)
    return has_some and settings is not None and above < settings.max_depth


def _delegating_tools(agent: Agent, config: HarnessConfig, depth: int) -> list[Tool]:
    if not may_delegate(agent, config, depth):
        return []
    # Here, as of the completion tool below.
    from harness_actors.subagents import delegates_of

    return list(delegates_of(agent))


def _guidance(agent: Agent) -> str:
    from harness_actors.subagents import guidance_of

    return guidance_of(agent)


def _strict_form(
    output: OutputType, agent: Agent, tools: ToolSet, ending: Tool | None
) -> StrictForm | None:
    from harness_actors.outputs.strict import strict_form

    return strict_form(output, agent.model, tools, None if ending is None else ending.spec.name)


def _completion_tool(output: OutputType | None, *, checked: bool) -> Tool:
    # Here, because the room of tools loads pydantic, and listing executors must not.
    if output is not None:
        return output.completion(checked=checked)
    from harness_actors.tools.completion import work_complete, work_complete_to_check

    return work_complete_to_check if checked else work_complete


def _artifact_reader() -> Tool:
    from harness_actors.tools.artifacts import read_artifact

    return read_artifact
