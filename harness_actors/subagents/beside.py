"""The tools by which a model asks those that it has sent out beside its own work."""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import DelegatingTool, ToolSpec
from harness_actors.signals import ChildRequest, ChildRequestKind
from harness_actors.subagents.delegate import MOST_PROMPT_CHARS
from harness_actors.tools.signature import Signature, read_signature

MOST_HANDLES = 1000
WAIT_S = 600.0
Handle = Annotated[str, Field(min_length=1, max_length=100)]
Handles = Annotated[list[Handle], Field(max_length=MOST_HANDLES)]


async def _list() -> None:
    """List the agents that you have sent out in the background, and how each has ended."""


async def _status(agent: Handle) -> None:
    """See where an agent in the background stands: at what it is, since when nothing came of it,
    how often its process was replaced, and what it has used.

    Args:
        agent: Its handle, such as research-1.
    """


async def _wait(
    agents: Handles | None = None,
    until: Literal["any", "all"] = "all",
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = WAIT_S,
) -> None:
    """Wait for agents in the background, when you can do nothing without what they come to.

    Args:
        agents: Their handles; leave it out for all that are at work.
        until: Whether any of them is to have ended, or all.
        timeout_s: How many seconds to wait at most.
    """


async def _result(agent: Handle) -> None:
    """Read again what an agent in the background came to. You are told once without asking.

    Args:
        agent: Its handle.
    """


async def _send(agent: Handle, message: str) -> None:
    """Tell an agent in the background something; it reads that before it goes on.

    Args:
        agent: Its handle.
        message: What it is to know, or to do otherwise.
    """


async def _cancel(agents: Annotated[list[Handle], Field(min_length=1, max_length=1000)]) -> None:
    """End agents in the background that are no longer needed.

    Args:
        agents: Their handles.
    """


_SAYS: dict[ChildRequestKind, Callable[..., Any]] = {
    "list": _list,
    "status": _status,
    "wait": _wait,
    "result": _result,
    "send": _send,
    "cancel": _cancel,
}


class AskBeside(DelegatingTool):
    """A tool by which a model asks something of those that it has sent out.

    Args:
        kind: What.
    """

    def __init__(self, kind: ChildRequestKind) -> None:
        self._kind = kind

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self._name,
            description=self._signature.description,
            parameters=self._signature.arguments.schema,
            effect="local_write" if self._kind in ("send", "cancel") else "read_only",
            # Who answers it writes that down together with what it has done.
            idempotent=True,
            volatile=True,
            polled=self._kind in ("list", "status", "wait"),
        )

    def delegation(self, call: ToolCall) -> ChildRequest:
        given = self._signature.arguments.parse(call.arguments)
        text = given.get("message", "").strip()
        if self._kind == "send" and not text:
            raise ToolError("message is empty; say what the agent is to know")
        if len(text) > MOST_PROMPT_CHARS:
            problem = f"message has {len(text):,} characters, and may have {MOST_PROMPT_CHARS:,}"
            raise ToolError(f"{problem}; put what is long into a file, and name that")
        one = given.get("agent")
        handles = given.get("agents") or ([] if one is None else [one])
        return ChildRequest(
            call_id=call.id,
            kind=self._kind,
            children=tuple(dict.fromkeys(handles)),
            text=text,
            any=given.get("until") == "any",
            timeout_s=given.get("timeout_s", WAIT_S) if self._kind == "wait" else None,
        )

    @cached_property
    def _signature(self) -> Signature:
        return read_signature(_SAYS[self._kind], self._name, None)

    @property
    def _name(self) -> str:
        return f"agent_{self._kind}"


@cache
def tools_beside() -> Sequence[AskBeside]:
    """The tools of an agent that sends others out in the background."""
    return tuple(AskBeside(kind) for kind in _SAYS)
