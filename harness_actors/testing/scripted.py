"""A model that answers from a script."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from harness_actors.errors import ModelError, ModelSetupError
from harness_actors.messages import Message, ToolCall, encode_json
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage

Arguments = Mapping[str, Any] | str
"""Arguments of a call; a text is sent as it is, JSON or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a script answers.

    Attributes:
        said: The text; None for none.
        asked: The calls: names with their arguments as JSON.
        ids: Ids of the calls; what is missing is derived from the conversation.
        finish_reason: As a provider would say it; None lets it follow from the rest.
        raised: An error in place of an answer.
    """

    said: str | None = None
    asked: tuple[tuple[str, str], ...] = ()
    ids: tuple[str, ...] = ()
    finish_reason: str | None = None
    raised: ModelError | None = None

    @classmethod
    def text(cls, text: str, *, finish_reason: str | None = None) -> Self:
        return cls(said=text, finish_reason=finish_reason)

    @classmethod
    def call(
        cls, name: str, arguments: Arguments | None = None, *, said: str | None = None
    ) -> Self:
        """One tool call."""
        return cls.calls([(name, arguments or {})], said=said)

    @classmethod
    def calls(
        cls,
        calls: Sequence[tuple[str, Arguments]],
        *,
        said: str | None = None,
        ids: Sequence[str] = (),
    ) -> Self:
        """Several tool calls in one message."""
        asked = tuple((name, _encoded(arguments)) for name, arguments in calls)
        return cls(said=said, asked=asked, ids=tuple(ids))

    @classmethod
    def error(cls, error: ModelError) -> Self:
        """Fail; for `ScriptedModel` only, a server has faults instead."""
        return cls(raised=error)

    def tool_calls(self, position: int) -> tuple[ToolCall, ...]:
        """The calls of a message that stands at `position` in its conversation.

        Their ids depend on nothing else, so the same conversation gets the same ones.
        """
        return tuple(
            ToolCall(self.ids[i] if i < len(self.ids) else f"call_{position}_{i}", name, arguments)
            for i, (name, arguments) in enumerate(self.asked)
        )

    @property
    def ending(self) -> str:
        """The finish reason."""
        return self.finish_reason or ("tool_calls" if self.asked else "stop")


def _encoded(arguments: Arguments) -> str:
    return arguments if isinstance(arguments, str) else encode_json(dict(arguments)).decode()


Script = Callable[[Sequence[Message]], Reply]


class ScriptedModel:
    """Answers the `Model` port from a script. No key, no cost.

    Args:
        script: What to answer, as a function of the conversation alone: a run that is taken
            up in another process must get the same answers. Or a list of replies: the first
            answers a conversation in which the model has not spoken yet, and so on.
        name: Name of the model.
        latency_s: Seconds that each answer takes.
        word_s: Seconds between two words of an answer that is streamed.
    """

    key_names: tuple[str, ...] = ()
    costs_known = True

    def __init__(
        self,
        script: Script | Sequence[Reply],
        name: str = "scripted",
        latency_s: float = 0.0,
        word_s: float = 0.0,
    ) -> None:
        self.name = name
        self._script = script if callable(script) else tuple(script)
        self._latency_s = latency_s
        self._word_s = word_s

    def __repr__(self) -> str:
        return f"ScriptedModel(name={self.name!r})"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The script says so, or a list of replies is at its end.
        """
        await asyncio.sleep(self._latency_s)
        reply = self._reply(request.messages)
        if reply.raised is not None:
            raise reply.raised
        calls = reply.tool_calls(len(request.messages))
        said = Message.assistant(reply.said, calls)
        usage = Usage(
            model_calls=1,
            input_tokens=sum(message.tokens for message in request.messages)
            + len(request.tools.encoded) // 4,
            output_tokens=said.tokens,
        )
        return ModelResponse(
            text=reply.said, tool_calls=calls, finish_reason=reply.ending, usage=usage
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request, its text word by word."""
        response = await self.complete(request)
        for word in words_of(response.text or ""):
            yield word
            if self._word_s:
                await asyncio.sleep(self._word_s)
        yield response

    def _reply(self, messages: Sequence[Message]) -> Reply:
        if callable(self._script):
            return self._script(messages)
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken >= len(self._script):
            raise ModelSetupError(
                self.name, f"the script has {len(self._script)} replies and was asked for one more"
            )
        return self._script[spoken]


def words_of(text: str) -> list[str]:
    """A text in pieces that end with a space; together they are the text.

    >>> words_of("the end")
    ['the ', 'end']
    """
    return [piece for piece in text.replace(" ", " \0").split("\0") if piece]
