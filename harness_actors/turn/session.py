"""The hooks around a whole run: when it begins, and when its end is on disk."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from harness_actors.policies import Hooks, InputText, SessionEnd, SessionStart
from harness_actors.ports import Agent, RunContext
from harness_actors.records import RunSpec
from harness_actors.signals import RunEnd
from harness_actors.turn.bounds import Bounds, Due
from harness_actors.turn.hook_calls import Asked, HookCalls
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices

logger = logging.getLogger(__name__)


async def begin_session(
    context: RunContext, prepared: PreparedAgent, services: AgentTurnServices
) -> Asked:
    """Tell hooks that a run begins, and ask its guards about the task.

    Returns:
        What the guards say; nothing where there are none.
    """
    if not prepared.hooks:
        return Asked()
    spec = context.spec
    bounds = Bounds(spec.config.limits, context.started_at, services.clock)
    calls = HookCalls(
        context, prepared.hooks, services.in_thread, bounds.wall_due, prepared.agent_path
    )
    started = calls.event(SessionStart, task=spec.task, conversation_id=spec.conversation_id)
    await calls.tell("session_start", "run", started)
    said = calls.event(InputText, text=lambda: _words_of(spec), task=spec.said)
    return await calls.judge("input_guard", "task", said)


async def end_session(
    agent: Agent,
    spec: RunSpec,
    end: RunEnd,
    turn: int,
    in_thread: Callable[..., Awaitable[Any]],
) -> None:
    """Tell hooks that the end of a run is on disk. What they raise is logged."""
    hooks = Hooks.given(getattr(agent, "hooks", None))
    if not hooks.session_end:
        return
    calls = HookCalls(None, hooks, in_thread, lambda: Due(None), (agent.name,))
    event = SessionEnd(
        run_id=spec.run_id,
        agent_path=calls.agent_path,
        turn=turn,
        status=end.status,
        reason=end.reason.kind,
        message=end.reason.message,
        output_text=end.output_text,
    )
    asked = Asked()
    for hook in hooks.session_end:
        await calls.answer("session_end", hook, event, asked)
    for name, problem in asked.plain.get("failed", ()):
        logger.warning("the hook %s of run %s failed: %s", name, spec.run_id, problem)


def _words_of(spec: RunSpec) -> str:
    return "\n".join(message.text for message in spec.said if message.role == "user")
