"""A control plane for long-running LLM agents on Ray."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.agents import ChatAgent as ChatAgent
    from harness_actors.batch import Task as Task
    from harness_actors.batch import TaskOutcome as TaskOutcome
    from harness_actors.batch import run_batch as run_batch
    from harness_actors.config import HarnessConfig as HarnessConfig
    from harness_actors.config import Limits as Limits
    from harness_actors.coordination.graph import HarnessWorkflowBuilder as HarnessWorkflowBuilder
    from harness_actors.errors import HarnessError as HarnessError
    from harness_actors.errors import ToolError as ToolError
    from harness_actors.harness import AgentHarness as AgentHarness
    from harness_actors.messages import Message as Message
    from harness_actors.models import LocalModel as LocalModel
    from harness_actors.models import OpenAIModel as OpenAIModel
    from harness_actors.results import HarnessResult as HarnessResult
    from harness_actors.tools import tool as tool

_HOMES = {
    "AgentHarness": "harness",
    "ChatAgent": "agents",
    "HarnessConfig": "config",
    "HarnessError": "errors",
    "HarnessResult": "results",
    "HarnessWorkflowBuilder": "coordination.graph",
    "Limits": "config",
    "LocalModel": "models",
    "Message": "messages",
    "OpenAIModel": "models",
    "Task": "batch",
    "TaskOutcome": "batch",
    "ToolError": "errors",
    "run_batch": "batch",
    "tool": "tools",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Names are looked up when used: `import harness_actors` loads neither Ray nor openai.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
