"""Calls for tests of what stands around them."""

from collections.abc import Mapping
from typing import Any

import orjson

from harness_actors.policies import ToolInvocation


def a_call(
    name: str = "note",
    arguments: Mapping[str, Any] | None = None,
    *,
    raw: str | None = None,
    idempotent: bool = False,
) -> ToolInvocation:
    return ToolInvocation(
        run_id="run",
        agent_path=("agent",),
        call_id="c1",
        tool_name=name,
        arguments=orjson.dumps(arguments or {}).decode() if raw is None else raw,
        effect="local_write",
        idempotent=idempotent,
    )


async def ran(call: ToolInvocation) -> str:
    """In place of a tool."""
    return f"ran {call.tool_name}"
