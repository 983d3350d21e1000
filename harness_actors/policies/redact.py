"""`Redact`: middleware that keeps secrets from the model, the journal and whoever reads along."""

import asyncio
from codecs import getincrementaldecoder
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import Any

from harness_actors.errors import ConfigError, ToolError
from harness_actors.exact_json import values_in, values_text
from harness_actors.messages import Message, ToolCall
from harness_actors.policies.middleware import (
    CallDeniedError,
    NextModel,
    NextTool,
    TextFilter,
    ToolInvocation,
)
from harness_actors.policies.pattern_bounds import checked_pattern
from harness_actors.policies.redaction import Redactor, StreamRedactor
from harness_actors.ports import LargeResult, ModelRequest, ModelResponse, ToolOutput

KEPT_MESSAGES = 4_096
"""Messages whose redacted form is kept, so that a long conversation is searched once."""


@dataclass(frozen=True)
class Redact:
    """Replaces what looks like a secret by ``[redacted]``.

    Known are: keys of providers that begin by a name, private keys in PEM, bearer tokens, signed
    tokens and passwords in addresses. It is done to results of tools before they are on record,
    to what the model is sent, and to what it answers, while it is told, too. The task itself is
    in the journal as it was given. What a secret looks like that has no known form nobody can
    say, so give a pattern for yours.

    Attributes:
        patterns: Regular expressions of secrets of your own. Each repeat in them must have an
            upper bound, as in ``cust-[0-9]{6,20}``.

    Raises:
        ConfigError: A pattern is none, or could take for ever.
    """

    patterns: Sequence[str] = ()
    _redactor: Redactor = field(init=False, repr=False, compare=False)
    _seen: "OrderedDict[bytes, Message]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, list | tuple):
            problem = f"must be a list of regular expressions, not {self.patterns!r}"
            raise ConfigError("Redact.patterns", problem)
        object.__setattr__(self, "patterns", tuple(self.patterns))
        checked = [checked_pattern("Redact.patterns", pattern) for pattern in self.patterns]
        object.__setattr__(self, "_redactor", Redactor(checked))
        object.__setattr__(self, "_seen", OrderedDict())

    async def around_tool(self, call: ToolInvocation, next: NextTool) -> str:
        """Take secrets out of a result, and out of the words of an error."""
        try:
            result = await next(call)
        except Exception as error:
            if isinstance(error, ToolError) and isinstance(error.text, LargeResult):
                raise ToolError(await self._large(error.text)) from None
            # What was added to it is told, too.
            words = "\n".join((str(error), *getattr(error, "__notes__", ())))
            redacted = self._redactor.text(words)
            if redacted == words:
                raise
            # Without the error itself, whose traceback would tell.
            if isinstance(error, CallDeniedError):
                raise CallDeniedError(redacted) from None
            if isinstance(error, ToolError):
                raise ToolError(redacted) from None
            raise RuntimeError(f"{type(error).__name__}: {redacted}") from None
        if isinstance(result, LargeResult):
            return await self._large(result)
        redacted_result: str = self._plain(result)
        if isinstance(result, ToolOutput):
            return result.with_text(redacted_result)
        return redacted_result

    async def around_model(self, request: ModelRequest, next: NextModel) -> ModelResponse:
        """Take secrets out of a request and its answer."""
        messages = [self._message(message) for message in request.messages]
        response = await next(replace(request, messages=messages))
        return replace(
            response,
            text=None if response.text is None else self._redactor.text(response.text),
            tool_calls=tuple(self._call(call) for call in response.tool_calls),
        )

    def text_filter(self) -> TextFilter:
        """For the text of one answer while it comes."""
        return StreamRedactor(self._redactor)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Redact, (self.patterns,))

    async def _large(self, large: LargeResult) -> LargeResult:
        try:
            return await asyncio.to_thread(self._searched, large)
        except OSError as error:
            problem = f"its result could not be searched for secrets: {error.strerror}"
            raise ToolError(f"the call was made, but {problem}") from None

    def _searched(self, large: LargeResult) -> LargeResult:
        """The result in another file, searched piece by piece."""
        searching, decoder = self.text_filter(), getincrementaldecoder("utf-8")("replace")
        file = TemporaryFile()  # noqa: SIM115 - whoever takes it closes it
        try:
            for piece in large.pieces():
                file.write(searching.feed(decoder.decode(piece)).encode())
            rest = searching.feed(decoder.decode(b"", final=True)) + searching.end()
            file.write(rest.encode())
        except BaseException:
            file.close()
            raise
        finally:
            large.close()
        return LargeResult(self._redactor.text(str(large)), file, besides=large.besides)

    def _message(self, message: Message) -> Message:
        known = self._seen.get(message.encoded)
        if known is None:
            body = self._plain(message.body)
            # As it is where there is no secret: providers know what they were sent before.
            same = body == message.body
            known = message if same else Message.from_wire(body, tokens=message.tokens)
            self._seen[message.encoded] = known
            if len(self._seen) > KEPT_MESSAGES:
                self._seen.popitem(last=False)
        return known

    def _call(self, call: ToolCall) -> ToolCall:
        try:
            given = values_in(call.arguments)
        except ValueError:
            return replace(call, arguments=self._redactor.text(call.arguments))
        redacted = self._plain(given)
        if redacted == given:
            return call
        return replace(call, arguments=values_text(redacted))

    def _plain(self, value: Any) -> Any:
        match value:
            case str():
                return self._redactor.text(value)
            case list():
                return [self._plain(item) for item in value]
            case dict():
                return {name: self._plain(item) for name, item in value.items()}
            case _:
                return value
