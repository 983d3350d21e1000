"""The seams of the program: what the rooms expect of one another.

The port of the runtimes, which only the entry points use, is `actors/runtime.py`.
"""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.ports.artifacts import Artifact as Artifact
    from harness_actors.ports.artifacts import ConversationArtifacts as ConversationArtifacts
    from harness_actors.ports.artifacts import LargeResult as LargeResult
    from harness_actors.ports.child_copies import ChildCopies as ChildCopies
    from harness_actors.ports.child_copies import ChildCopy as ChildCopy
    from harness_actors.ports.clock import Clock as Clock
    from harness_actors.ports.deadlines import DeadlineToken as DeadlineToken
    from harness_actors.ports.delegation import DelegatingTool as DelegatingTool
    from harness_actors.ports.delegation import Delegation as Delegation
    from harness_actors.ports.journal import Journal as Journal
    from harness_actors.ports.locks import ResourceLocks as ResourceLocks
    from harness_actors.ports.models import Agent as Agent
    from harness_actors.ports.models import Model as Model
    from harness_actors.ports.models import ModelRequest as ModelRequest
    from harness_actors.ports.models import ModelResponse as ModelResponse
    from harness_actors.ports.models import StrictForm as StrictForm
    from harness_actors.ports.models import TokenCounter as TokenCounter
    from harness_actors.ports.runs import Executor as Executor
    from harness_actors.ports.runs import RunContext as RunContext
    from harness_actors.ports.strategies import Candidate as Candidate
    from harness_actors.ports.strategies import Strategy as Strategy
    from harness_actors.ports.summaries import MadeSummary as MadeSummary
    from harness_actors.ports.summaries import Summarizer as Summarizer
    from harness_actors.ports.summaries import SummaryRequest as SummaryRequest
    from harness_actors.ports.tool_context import MOST_TOLD as MOST_TOLD
    from harness_actors.ports.tool_context import TOLD_CHARS as TOLD_CHARS
    from harness_actors.ports.tool_context import Cover as Cover
    from harness_actors.ports.tool_context import ToolContext as ToolContext
    from harness_actors.ports.tool_context import ToolProcess as ToolProcess
    from harness_actors.ports.tool_context import ToolProcesses as ToolProcesses
    from harness_actors.ports.tool_context import ToolResources as ToolResources
    from harness_actors.ports.tool_context import ToolWorkers as ToolWorkers
    from harness_actors.ports.tools import AskedQuestion as AskedQuestion
    from harness_actors.ports.tools import AskingTool as AskingTool
    from harness_actors.ports.tools import Effect as Effect
    from harness_actors.ports.tools import Tool as Tool
    from harness_actors.ports.tools import ToolOutput as ToolOutput
    from harness_actors.ports.tools import ToolSet as ToolSet
    from harness_actors.ports.tools import ToolSpec as ToolSpec
    from harness_actors.ports.verification import CommandEnd as CommandEnd
    from harness_actors.ports.verification import ContractCommands as ContractCommands
    from harness_actors.ports.verification import ContractFiles as ContractFiles
    from harness_actors.ports.verification import Exists as Exists
    from harness_actors.ports.verification import FileFact as FileFact
    from harness_actors.ports.verification import FileQuestion as FileQuestion
    from harness_actors.ports.verification import Find as Find
    from harness_actors.ports.verification import InFile as InFile
    from harness_actors.ports.verification import Judge as Judge
    from harness_actors.ports.verification import Look as Look
    from harness_actors.ports.verification import NewestResult as NewestResult
    from harness_actors.ports.verification import ToolResults as ToolResults
    from harness_actors.ports.verification import Validate as Validate

# Looked up when used: a worker process needs the ports of tools, and waits for no others.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "Agent": "models",
        "Artifact": "artifacts",
        "AskedQuestion": "tools",
        "AskingTool": "tools",
        "Candidate": "strategies",
        "Clock": "clock",
        "CommandEnd": "verification",
        "ContractCommands": "verification",
        "ContractFiles": "verification",
        "ChildCopies": "child_copies",
        "ChildCopy": "child_copies",
        "ConversationArtifacts": "artifacts",
        "Cover": "tool_context",
        "DeadlineToken": "deadlines",
        "DelegatingTool": "delegation",
        "Delegation": "delegation",
        "Effect": "tools",
        "Executor": "runs",
        "Exists": "verification",
        "FileFact": "verification",
        "FileQuestion": "verification",
        "Find": "verification",
        "InFile": "verification",
        "Journal": "journal",
        "Judge": "verification",
        "LargeResult": "artifacts",
        "Look": "verification",
        "MOST_TOLD": "tool_context",
        "MadeSummary": "summaries",
        "Model": "models",
        "ModelRequest": "models",
        "ModelResponse": "models",
        "NewestResult": "verification",
        "ResourceLocks": "locks",
        "RunContext": "runs",
        "Strategy": "strategies",
        "StrictForm": "models",
        "Summarizer": "summaries",
        "SummaryRequest": "summaries",
        "TOLD_CHARS": "tool_context",
        "TokenCounter": "models",
        "Tool": "tools",
        "ToolContext": "tool_context",
        "ToolOutput": "tools",
        "ToolProcess": "tool_context",
        "ToolProcesses": "tool_context",
        "ToolResources": "tool_context",
        "ToolResults": "verification",
        "ToolSet": "tools",
        "ToolSpec": "tools",
        "ToolWorkers": "tool_context",
        "Validate": "verification",
    },
)
