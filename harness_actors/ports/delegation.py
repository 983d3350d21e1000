"""What the harness expects of a tool whose calls are runs of their own."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.config import ChildWorkspace, Completion, Limits
from harness_actors.messages import ToolCall
from harness_actors.ports.tool_context import ToolContext
from harness_actors.ports.tools import ToolSpec
from harness_actors.signals import ChildRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """What a call has another agent do.

    Attributes:
        agent: Name of that agent, among those of the one that calls.
        pool: Whose actors serve it.
        task: What it is told.
        completion: By what its run is done; None for what the one that calls is done by.
        limits: Bounds of its run, inside what is left of the one that calls.
        most_words: How long its answer may be; None for any length.
        window_tokens: How large a request of its model may be; None for that of the one that calls.
        model: Name of its model, for people.
        contract: What its run must have come to, as plain values; None for nothing.
        typed: Its run comes to a value, and not to words.
        background: The run that calls goes on beside it.
        forked: Its run begins with the conversation of the one that calls.
        workspace: Where its run works, as to the workspace of the one that calls.
    """

    agent: str
    pool: str
    task: str
    completion: Completion | None = "answer"
    limits: Limits = field(default_factory=Limits)
    most_words: int | None = None
    window_tokens: int | None = None
    model: str = ""
    contract: Mapping[str, Any] | None = None
    typed: bool = False
    background: bool = False
    forked: bool = False
    workspace: ChildWorkspace = "shared"


class DelegatingTool(ABC):
    """A tool whose calls are not made: each is a run of its own, and the run that calls waits for
    it; or asks something of such runs that were begun beside it.

    To be derived from, so that no other tool is taken for one.
    """

    @property
    @abstractmethod
    def spec(self) -> ToolSpec: ...

    @abstractmethod
    def delegation(self, call: ToolCall) -> Delegation | ChildRequest:
        """What a call has done, or asks.

        Args:
            call: The call; its arguments are what the model wrote, and are checked here.

        Raises:
            ToolError: Nobody can do that; said to the model.
        """

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Never called where the tool is offered to a model by an agent turn of ours."""
        raise NotImplementedError(f"{self.spec.name} is done by a run of its own")
