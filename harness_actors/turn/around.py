"""The middleware of an agent around a call of one of its tools."""

from collections.abc import Awaitable
from dataclasses import dataclass

from harness_actors.messages import ToolCall
from harness_actors.policies import MiddlewareChain, ToolInvocation
from harness_actors.ports import Tool, ToolContext


@dataclass(frozen=True, slots=True)
class AroundTools:
    """Runs tools through middleware.

    Attributes:
        chain: The middleware.
        agent_path: Names of the agents down to the one at work.
    """

    chain: MiddlewareChain
    agent_path: tuple[str, ...]

    def run(self, tool: Tool, call: ToolCall, context: ToolContext) -> Awaitable[str]:
        """As `Tool.run`."""
        spec = tool.spec

        def within(invocation: ToolInvocation) -> Awaitable[str]:
            return tool.run(invocation.arguments, context)

        invocation = ToolInvocation(
            run_id=context.run_id,
            agent_path=self.agent_path,
            call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            effect=spec.effect,
            idempotent=spec.idempotent or spec.effect == "read_only",
        )
        return self.chain.call_tool(invocation, within)
