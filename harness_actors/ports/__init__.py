"""The seams of the program: what the rooms expect of one another.

The port of the runtimes, which only the entry points use, is `actors/runtime.py`.
"""

from harness_actors.ports.artifacts import Artifact, ConversationArtifacts, LargeResult
from harness_actors.ports.clock import Clock
from harness_actors.ports.deadlines import DeadlineToken
from harness_actors.ports.journal import Journal
from harness_actors.ports.models import Agent, Model, ModelRequest, ModelResponse, TokenCounter
from harness_actors.ports.runs import Executor, RunContext
from harness_actors.ports.tool_context import (
    MOST_TOLD,
    TOLD_CHARS,
    Cover,
    ToolContext,
    ToolProcess,
    ToolProcesses,
    ToolResources,
    ToolWorkers,
)
from harness_actors.ports.tools import (
    AskedQuestion,
    AskingTool,
    Effect,
    Tool,
    ToolOutput,
    ToolSet,
    ToolSpec,
)

__all__ = [
    "MOST_TOLD",
    "TOLD_CHARS",
    "Agent",
    "Artifact",
    "AskedQuestion",
    "AskingTool",
    "Clock",
    "ConversationArtifacts",
    "Cover",
    "DeadlineToken",
    "Effect",
    "Executor",
    "Journal",
    "LargeResult",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "RunContext",
    "TokenCounter",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "ToolProcess",
    "ToolProcesses",
    "ToolResources",
    "ToolSet",
    "ToolSpec",
    "ToolWorkers",
]
