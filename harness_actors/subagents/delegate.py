"""The tools by which a model delegates; their calls are runs of their own."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.models.chain import models_of
from harness_actors.models.windows import window_of
from harness_actors.ports import DelegatingTool, Delegation, Tool, ToolSpec
from harness_actors.subagents.child_agent import made_of, shown_to
from harness_actors.subagents.holding import runs_code
from harness_actors.subagents.spec import SubAgentSpec, has_copies
from harness_actors.tools.signature import Signature, read_signature

MOST_PROMPT_CHARS = 100_000


async def _told(prompt: str) -> None:
    """Delegate.

    Args:
        prompt: What is to be done, with all that is needed for it: whoever does it sees nothing
            else of this conversation.
    """


async def _said(prompt: str) -> None:
    """Delegate.

    Args:
        prompt: What is to be done: whoever does it knows this conversation.
    """


class Delegate(DelegatingTool):
    """The tool by which a model delegates to one agent.

    Args:
        agent: Who delegates.
        spec: To whom.
    """

    def __init__(self, agent: Any, spec: SubAgentSpec) -> None:
        self._agent, self._to = agent, spec

    @cached_property
    def spec(self) -> ToolSpec:
        tools = made_of(self._agent, self._to).tools
        only_reads = all(_only_reads(tool) for tool in tools) and not runs_code(self._to.contract)
        return ToolSpec(
            name=self._to.name,
            description=self._to.description,
            parameters=self._signature.arguments.schema,
            effect="read_only" if only_reads else "local_write",
            # It has begun where that is on disk, and else not.
            idempotent=True,
            # Asked again, another run looks again.
            volatile=True,
            polled=False,
            durability="anchoring",
        )

    def delegation(self, call: ToolCall) -> Delegation:
        prompt = self._signature.arguments.parse(call.arguments)["prompt"].strip()
        if not prompt:
            raise ToolError("prompt is empty; say what is to be done")
        if len(prompt) > MOST_PROMPT_CHARS:
            problem = f"prompt has {len(prompt):,} characters, and may have {MOST_PROMPT_CHARS:,}"
            raise ToolError(f"{problem}; put what is long into a file, and name that")
        model = self._to.model
        windows = [] if model is None else [window_of(one.name) for one in models_of(model)]
        return Delegation(
            agent=self._to.name,
            pool=self._to.pool,
            task=prompt,
            completion=None if self._to.fork else self._to.completion,
            limits=self._to.limits,
            most_words=self._to.max_words,
            contract=self._to.contract,
            typed=self._to.output_type is not None,
            background=self._to.background,
            forked=self._to.fork,
            workspace=self._to.workspace,
            window_tokens=min(windows, default=None),
            model=(model or self._agent.model).name,
        )

    @property
    def _signature(self) -> Signature:
        return _signature_of(self._to.name, self._to.fork)


@lru_cache(maxsize=256)
def _signature_of(name: str, forks: bool) -> Signature:
    # Kept, for reading one takes longer than all else that an agent is made ready by.
    return read_signature(_said if forks else _told, name, None)


def _only_reads(tool: Any) -> bool:
    return bool(tool.spec.effect == "read_only")


def delegates_of(agent: Any) -> Sequence[Tool]:
    """The tools by which an agent delegates, and those that it has for that; none where it has
    nobody to delegate to."""
    specs = shown_to(agent)
    tools: list[Tool] = [Delegate(agent, spec) for spec in specs]
    # Here, for most agents wait for those that they send out, and share a folder with them.
    if any(spec.background for spec in specs):
        from harness_actors.subagents.beside import tools_beside

        tools += tools_beside()
    if has_copies(specs):
        from harness_actors.subagents.bringing_in import agent_apply, agent_changes

        tools += (agent_changes, agent_apply)
    return tools
