"""What the harness expects of models, and of whoever has one."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness_actors.messages import Message, ToolCall
from harness_actors.ports.tools import Tool, ToolSet
from harness_actors.results import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictForm:
    """What a provider is sent that can hold its model to a form.

    Attributes:
        tools: In the place of those of the request; None for these.
        response_format: The field of that name, encoded; None leaves it out.
    """

    tools: ToolSet | None = None
    response_format: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        messages: The conversation, the system prompt first; joined on the wire from
            their encoded bytes.
        tools: What the model may call.
        strict: What it may be held to by a provider that can. A model may leave it alone, for
            what it says is looked at in any case.
    """

    messages: Sequence[Message]
    tools: ToolSet
    strict: StrictForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """One answer of a model.

    Attributes:
        text: What it says; None where it only calls tools.
        tool_calls: What it asks for, with ids as the provider gave them.
        finish_reason: As the provider says it, such as ``"stop"`` or ``"length"``.
        usage: Of this call alone: `model_calls` is 1, `tool_calls` and `working_s` are 0.
        waited_s: Seconds spent waiting for the provider to accept a retry.
    """

    text: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(model_calls=1))
    waited_s: float = 0.0


class Model(Protocol):
    """Whatever answers a conversation. It is pickled with its agent, without its secrets."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The subclass says what to do next. Retries have been made.
        """

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request, its text in pieces; the whole response comes last."""


class TokenCounter(Protocol):
    """Counts the tokens of a text, each message once."""

    async def count(self, text: str) -> int: ...


class Agent(Protocol):
    """A model with instructions and tools. Never changed by the harness."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> Model: ...
    @property
    def instructions(self) -> str: ...
    @property
    def tools(self) -> Sequence[Tool]: ...
