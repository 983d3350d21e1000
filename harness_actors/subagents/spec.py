"""What an agent is to which another one delegates, as its user says it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from harness_actors.config import ChildWorkspace, Completion, Limits
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.outputs import OutputType
from harness_actors.ports import Model

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Of a tool, as providers take it."""
CUSTOM_POOL = "sub_agent"
"""Whose actors serve agents that a user has made."""
USUAL_LIMITS = Limits(model_calls=100)
"""Of an agent that a user has made, and said nothing of bounds."""
BESIDE = ("agent_list", "agent_status", "agent_wait", "agent_result", "agent_send", "agent_cancel")
"""Tools of an agent that has sub-agents in the background."""
OF_COPIES = ("agent_changes", "agent_apply")
"""Tools of an agent that has sub-agents which work in copies."""
OF_THE_HARNESS = ("work_complete", "read_artifact", *BESIDE, *OF_COPIES)
"""Tools that are added where they are needed."""
_OF_A_FORK = {
    "instructions": "",
    "model": None,
    "tools": None,
    "reads_only": False,
    "output_type": None,
    "workspace": "shared",
}
"""What a fork says in the fields that change what stands before a conversation in a request."""


@dataclass(frozen=True, kw_only=True)
class SubAgentSpec:
    """An agent to which another one delegates. Each call of it is a run of its own, with a
    conversation of its own; what the run comes to is the result of the call.

    Attributes:
        name: Also that of the tool by which it is called: letters, digits, ``_`` and ``-``.
        description: What it is for, as the model is told that delegates to it.
        instructions: Its system prompt; empty for none.
        model: Who answers it; None for the model of the agent that delegates.
        tools: Names of those tools of that agent that it has, too; None for all of them. It never
            has others.
        reads_only: It has only those of them that read.
        limits: Bounds of one of its runs, inside what is left of the run that delegates.
        completion: ``"answer"``: it is done when it answers without a call; ``"explicit"``: when
            it calls `work_complete`, whose summary is the result.
        max_words: How long its answer may be; it is asked once for a shorter one, and what is too
            long still is cut. None for any length.
        contract: What each of its runs must have come to before it is over, a `TaskContract`; kept
            as plain values. None for nothing.
        output_type: What its runs are to come to, as of `ChatAgent`; the value is the result, as
            JSON. None for words.
        background: Whoever delegates to it goes on beside it: the call returns a handle at once,
            and what the run comes to is told before that one's next model call. It comes with the
            tools ``agent_list``, ``agent_status``, ``agent_wait``, ``agent_result``,
            ``agent_send`` and ``agent_cancel``.
        fork: It begins with the conversation of the agent that delegates, up to the call, as that
            one's model knows it: with its system prompt, model and tools, so that providers have
            its requests in their cache. It then ends by what that one ends by, and delegates to
            nobody.
        sub_agents: Those to which it delegates in turn, as deep as settings allow.
        workspace: ``"shared"``: it works where the agent works that delegates. ``"read_only"``: it
            sees that folder, our tools write nothing there for it, and it is not offered tools
            that need ``filesystem`` or ``shell`` and do more than read. ``"copy"``: each of its
            runs begins with a copy of that folder; whoever delegates looks at what has changed
            there with ``agent_changes``, and brings it in with ``agent_apply``.

    Raises:
        ConfigError: A value is none, or two agents have one name.
    """

    name: str
    description: str
    instructions: str = ""
    model: Model | None = None
    tools: Sequence[str] | None = None
    reads_only: bool = False
    limits: Limits = USUAL_LIMITS
    completion: Completion = "answer"
    max_words: int | None = None
    contract: Any = None
    output_type: Any = None
    background: bool = False
    fork: bool = False
    sub_agents: Sequence["SubAgentSpec"] = ()
    workspace: ChildWorkspace = "shared"
    pool: str = field(default=CUSTOM_POOL, repr=False)

    def __post_init__(self) -> None:
        _check(self)
        where = f"sub_agents.{self.name}"
        if self.tools is not None:
            object.__setattr__(self, "tools", _names(f"{where}.tools", self.tools))
        object.__setattr__(self, "contract", _contract(f"{where}.contract", self.contract))
        output = OutputType.of(self.output_type, f"{where}.output_type")
        object.__setattr__(self, "output_type", output)
        below = as_specs(self.sub_agents, f"{where}.sub_agents")
        object.__setattr__(self, "sub_agents", below)
        check_specs(below, self.tools, f"{where}.sub_agents")


def as_specs(given: object, where: str) -> tuple[SubAgentSpec, ...]:
    """The agents that are given to delegate to.

    Raises:
        ConfigError: They are no list, or one of them is none; the field is `where`.
    """
    if not isinstance(given, list | tuple):
        raise ConfigError(where, f"must be a list, such as [explore()], not {given!r:.80}")
    for spec in given:
        if not isinstance(spec, SubAgentSpec):
            problem = f"must be SubAgentSpec(...), explore() or the like, not {spec!r:.80}"
            raise ConfigError(where, problem)
    return tuple(given)


def check_specs(
    specs: Sequence[SubAgentSpec], tools: Iterable[str] | None, where: str = "sub_agents"
) -> None:
    """Refuse agents to which another one cannot delegate.

    Args:
        specs: The agents.
        tools: Names of the tools of the one that delegates; None where they are not known.
        where: The field that has them, for errors.

    Raises:
        ConfigError: One has the name of another or of a tool, or is to have a tool that the one
            that delegates has not; so of those below it.
    """
    own = None if tools is None else set(tools)
    if own and any(spec.background for spec in specs) and (taken := own.intersection(BESIDE)):
        problem = f"{min(taken)!r} is a tool of the harness, for agents in the background"
        raise ConfigError("tools", f"{problem}; rename yours")
    if own and has_copies(specs) and (taken := own.intersection(OF_COPIES)):
        problem = f"{min(taken)!r} is a tool of the harness, for agents that work in copies"
        raise ConfigError("tools", f"{problem}; rename yours")
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise ConfigError(where, f"two are named {spec.name!r}")
        seen.add(spec.name)
        if spec.name in OF_THE_HARNESS:
            problem = f"{spec.name!r} has the name of a tool of the harness; rename it"
            raise ConfigError(where, problem)
        if own is None:
            continue
        if spec.name in own:
            problem = f"{spec.name!r} has the name of a tool of its agent; rename one"
            raise ConfigError(where, problem)
        if missing := [name for name in spec.tools or () if name not in own]:
            has = ", ".join(sorted(own)) or "none"
            problem = f"{missing[0]!r} is no tool of the agent that delegates; that has {has}"
            raise ConfigError(f"{where}.{spec.name}.tools", problem)
        # Of those below it was not known which tools there are, where it has all of them.
        its = own if spec.tools is None else set(spec.tools)
        check_specs(spec.sub_agents, its, f"{where}.{spec.name}.sub_agents")


def tools_of(specs: Sequence[SubAgentSpec]) -> Iterator[str]:
    """Names of the tools that an agent, and those below it, have to delegate by."""
    for spec in specs:
        yield spec.name
        yield from tools_of(spec.sub_agents)
    if any(spec.background for spec in specs):
        yield from BESIDE
    if has_copies(specs):
        yield from OF_COPIES


def has_copies(specs: Iterable[SubAgentSpec]) -> bool:
    """Whether one of some agents works in a copy."""
    return any(spec.workspace == "copy" for spec in specs)


def _check(spec: Any) -> None:
    name, words = spec.name, spec.max_words
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problem = f"must be named by letters, digits, _ and -, 64 at most, not {name!r:.80}"
        raise ConfigError("sub_agents.name", problem)

    def refuse(field: str, problem: str) -> ConfigError:
        return ConfigError(f"sub_agents.{name}.{field}", problem)

    if not isinstance(spec.description, str) or not spec.description.strip():
        raise refuse("description", "is needed: by it a model knows what the agent is for")
    if not isinstance(spec.instructions, str):
        raise refuse("instructions", f"must be a text, not {spec.instructions!r:.80}")
    if spec.model is not None and not hasattr(spec.model, "complete"):
        problem = f'must be a model such as OpenAIModel("gpt-4.1-mini"), not {spec.model!r:.80}'
        raise refuse("model", problem)
    for switch in ("background", "reads_only", "fork"):
        if not isinstance(given := getattr(spec, switch), bool):
            raise refuse(switch, f"must be true or false, not {given!r:.80}")
    if spec.workspace not in (known := get_args(ChildWorkspace)):
        there = ", ".join(map(repr, known))
        raise refuse("workspace", f"must be one of {there}, not {spec.workspace!r:.80}")
    own = [one for one, none in _OF_A_FORK.items() if getattr(spec, one) != none]
    if spec.fork and (own := [*own, *(["sub_agents"] if spec.sub_agents else ())]):
        problem = "a fork has those of the agent that delegates; leave it out, or say fork=False"
        raise refuse(own[0], problem)
    if spec.fork and spec.completion == "explicit":
        raise refuse("completion", "a fork ends by what the agent ends by that delegates")
    if not isinstance(spec.limits, Limits):
        raise refuse("limits", f"must be Limits(...), not {spec.limits!r:.80}")
    if spec.completion not in get_args(Completion):
        raise refuse("completion", f"must be 'answer' or 'explicit', not {spec.completion!r:.80}")
    if words is not None and (isinstance(words, bool) or not isinstance(words, int) or words < 1):
        problem = f"must be a whole number of at least 1, not {words!r:.80}"
        raise refuse("max_words", problem)
    if words is not None and spec.output_type is not None:
        raise refuse("max_words", "is for words, and with an output_type it answers with a value")


def _contract(where: str, given: Any) -> Mapping[str, Any] | None:
    """A contract as plain values, in which all is that was left out."""
    if given is None:
        return None
    # Here, for it loads what checks schemas, which most agents do not need.
    from harness_actors.contracts.plain import contract_of

    plain = given.as_plain() if hasattr(given, "as_plain") else given
    if not isinstance(plain, Mapping):
        raise ConfigError(where, f"must be TaskContract(...), not {given!r:.80}")
    try:
        return contract_of(plain).as_plain()
    except BadInputError as error:
        raise ConfigError(where, "; ".join(error.faults)) from error


def _names(where: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, list | tuple):
        raise ConfigError(where, f"must be a list of names, not {given!r:.80}")
    for name in given:
        if not isinstance(name, str) or list(given).count(name) > 1:
            raise ConfigError(where, f"must be names, each once, not {given!r:.80}")
    return tuple(given)
