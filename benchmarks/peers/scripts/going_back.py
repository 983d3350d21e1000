"""A check as LangChain's middleware has it: a hook after the agent that jumps back to the model."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, after_agent

from benchmarks.peers.checked import ATTEMPTS, CheckedTask, NotDoneError


def check_of(task: CheckedTask) -> AgentMiddleware:
    """Send the model back for as long as the task is not done."""
    sent_back = 0

    @after_agent(can_jump_to=["model"])
    async def is_done(state: AgentState, runtime: Any) -> dict[str, Any] | None:
        nonlocal sent_back
        gap = task.gap()
        if gap is None:
            return None
        if sent_back == ATTEMPTS:
            raise NotDoneError(gap)
        sent_back += 1
        return {"messages": [{"role": "user", "content": gap}], "jump_to": "model"}

    return is_done
