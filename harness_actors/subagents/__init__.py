"""Agents to which another one delegates: what they are, and what becomes of what they say."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.subagents.child_agent import ChildAgent as ChildAgent
    from harness_actors.subagents.child_agent import agent_at as agent_at
    from harness_actors.subagents.child_agent import check_listed as check_listed
    from harness_actors.subagents.child_agent import models_below as models_below
    from harness_actors.subagents.delegate import delegates_of as delegates_of
    from harness_actors.subagents.guidance import guidance_of as guidance_of
    from harness_actors.subagents.holding import check_held as check_held
    from harness_actors.subagents.holding import held_below as held_below
    from harness_actors.subagents.reports import child_result as child_result
    from harness_actors.subagents.reports import words_in as words_in
    from harness_actors.subagents.shipped import SHIPPED as SHIPPED
    from harness_actors.subagents.shipped import document as document
    from harness_actors.subagents.shipped import explore as explore
    from harness_actors.subagents.shipped import run_task as run_task
    from harness_actors.subagents.spec import SubAgentSpec as SubAgentSpec
    from harness_actors.subagents.spec import as_specs as as_specs
    from harness_actors.subagents.spec import check_specs as check_specs
    from harness_actors.subagents.spec import tools_of as tools_of

__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "ChildAgent": "child_agent",
        "SHIPPED": "shipped",
        "SubAgentSpec": "spec",
        "agent_at": "child_agent",
        "as_specs": "spec",
        "check_held": "holding",
        "check_listed": "child_agent",
        "check_specs": "spec",
        "child_result": "reports",
        "delegates_of": "delegate",
        "document": "shipped",
        "explore": "shipped",
        "guidance_of": "guidance",
        "held_below": "holding",
        "models_below": "child_agent",
        "run_task": "shipped",
        "tools_of": "spec",
        "words_in": "reports",
    },
)
