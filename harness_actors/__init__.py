"""A control plane for long-running LLM agents on Ray."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

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
    from harness_actors.policies import Approve as Approve
    from harness_actors.policies import Refuse as Refuse
    from harness_actors.policies import Respond as Respond
    from harness_actors.results import HarnessResult as HarnessResult
    from harness_actors.tools import tool as tool

# Names are looked up when used: `import harness_actors` loads neither Ray nor openai.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "AgentHarness": "harness",
        "Approve": "policies",
        "ChatAgent": "agents",
        "HarnessConfig": "config",
        "HarnessError": "errors",
        "HarnessResult": "results",
        "HarnessWorkflowBuilder": "coordination.graph",
        "Limits": "config",
        "LocalModel": "models",
        "Message": "messages",
        "OpenAIModel": "models",
        "Refuse": "policies",
        "Respond": "policies",
        "Task": "batch",
        "TaskOutcome": "batch",
        "ToolError": "errors",
        "run_batch": "batch",
        "tool": "tools",
    },
)
