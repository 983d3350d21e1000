"""What may be done in a run, and by what an agent's owner decides it: hooks, middleware, rights."""

from harness_actors.policies.approvals import ApprovalRule, Approvals
from harness_actors.policies.capabilities import offered_tools
from harness_actors.policies.decisions import Approve, Refuse, Respond
from harness_actors.policies.hook_events import (
    AfterModel,
    AfterTool,
    AgentStop,
    BeforeModel,
    BeforeTool,
    HookEvent,
    InputText,
    OutputText,
    SessionEnd,
    SessionStart,
)
from harness_actors.policies.hooks import Hook, Hooks
from harness_actors.policies.middleware import (
    CallDeniedError,
    MiddlewareChain,
    TextFilter,
    ToolInvocation,
)
from harness_actors.policies.redact import Redact
from harness_actors.policies.shell_safety import ShellSafety
from harness_actors.policies.tool_usage import ToolUsage
from harness_actors.policies.verdicts import Allow, Ask, Change, Deny, EndRun, Replace

__all__ = [
    "AfterModel",
    "AfterTool",
    "AgentStop",
    "Allow",
    "ApprovalRule",
    "Approvals",
    "Approve",
    "Ask",
    "BeforeModel",
    "BeforeTool",
    "CallDeniedError",
    "Change",
    "Deny",
    "EndRun",
    "Hook",
    "HookEvent",
    "Hooks",
    "InputText",
    "MiddlewareChain",
    "OutputText",
    "Redact",
    "Refuse",
    "Replace",
    "Respond",
    "SessionEnd",
    "SessionStart",
    "ShellSafety",
    "TextFilter",
    "ToolInvocation",
    "ToolUsage",
    "offered_tools",
]
