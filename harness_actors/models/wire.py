"""The Chat Completions format: bytes of a request, and what the bytes of an answer say."""

from collections.abc import Mapping
from typing import Any

import orjson

from harness_actors.errors import ConfigError
from harness_actors.messages import ToolCall, encode_json, estimate_tokens
from harness_actors.models.body import RequestBody
from harness_actors.models.bounded import ANSWER_BYTES, OutOfBoundsError
from harness_actors.models.prices import Price
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage

OURS = ("messages", "model", "n", "stream", "tools")
"""Fields of a request that are no settings."""

NEEDS_TOOLS = ("parallel_tool_calls", "tool_choice")
"""Settings that providers refuse in a request without tools."""


MOST_LEVELS = 254
"""Nesting of lists and objects, at most: what the encoder takes."""
BYTES_PER_BRACKET = 16
"""Of the largest answer. Models take a token for a bracket or two, so that they never write as
many; three bytes for each, which can be meant to, would hold the event loop for half a second."""
MOST_TOKENS = 10**9
"""Tokens of one call, at most. No model takes or writes so many, and sums stay below 64 bits."""
FINISH_REASON_CHARS = 64
SAID_BYTES = 8 * 1024
"""What is kept of bytes that are no answer: more than is shown, so that a key which is cut there
is not seen."""


class UnusableAnswerError(ValueError):
    """The bytes that came are not an answer; says what is wrong with them.

    Attributes:
        problem: In words of our own.
        said: What came instead, which may hold anything; empty where it says nothing.
    """

    def __init__(self, problem: str, said: str = "") -> None:
        super().__init__(problem, said)
        self.problem = problem
        self.said = said


class RequestEncoder:
    """Joins the bytes of a request: what never changes is encoded once.

    Args:
        model: Name of the model on the wire.
        settings: Further fields of the request, such as ``{"temperature": 0.2}``.

    Raises:
        ConfigError: A setting is no JSON, or is the harness's own to set.
    """

    def __init__(self, model: str, settings: Mapping[str, Any]) -> None:
        for name in OURS:
            if name in settings:
                raise ConfigError(f"model.settings.{name}", "is set by the harness; leave it out")
        plain = {name: value for name, value in settings.items() if name not in NEEDS_TOOLS}
        self._head = b'{"model":' + encode_json(model) + b',"messages":['
        self._settings = _fields(plain)
        self._settings_with_tools = _fields(settings)
        options = (
            b"" if "stream_options" in settings else b',"stream_options":{"include_usage":true}'
        )
        self._stream = b',"stream":true' + options
        self._has_format = "response_format" in settings

    def encode(
        self, request: ModelRequest, *, stream: bool = False, strict: bool = False
    ) -> RequestBody:
        """The body of a request.

        Args:
            request: The request.
            stream: Its answer is to come in pieces.
            strict: With what the provider is to hold its model to.
        """
        form = request.strict if strict else None
        tail, tools = [b"]"], request.tools
        if form is not None and form.tools is not None:
            tools = form.tools
        if tools.specs:
            tail += (b',"tools":', tools.encoded, self._settings_with_tools)
        else:
            tail.append(self._settings)
        if form is not None and form.response_format is not None and not self._has_format:
            tail += (b',"response_format":', form.response_format)
        if stream:
            tail.append(self._stream)
        tail.append(b"}")
        messages = [message.encoded for message in request.messages]
        return RequestBody(self._head, messages, b"".join(tail))


def _fields(values: Mapping[str, Any]) -> bytes:
    """JSON fields to follow others in an object: ``b',"a":1,"b":2'``."""
    try:
        return b"," + encode_json(dict(values))[1:-1] if values else b""
    except TypeError as error:
        raise ConfigError("model.settings", f"must be plain JSON values: {error}") from None


def read_completion(answer: Mapping[str, Any], *, sent_bytes: int, price: Price) -> ModelResponse:
    """What a plain answer says.

    Args:
        answer: The answer's object.
        sent_bytes: Size of the request, for an estimate where no usage is reported.
        price: What the tokens cost.

    Raises:
        UnusableAnswerError: It has no choice.
    """
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnusableAnswerError("the answer has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise UnusableAnswerError("the answer's choice has no message")
    return ModelResponse(
        text=text_of(message.get("content")) or text_of(message.get("refusal")),
        tool_calls=tuple(_tool_call(call) for call in list_of(message.get("tool_calls"))),
        finish_reason=finish_reason_of(choices[0]) or "stop",
        usage=usage_of(answer.get("usage"), sent_bytes, message, price),
    )


def parse_object(body: bytes, most_bytes: int = ANSWER_BYTES) -> dict[str, Any]:
    """A JSON object.

    Args:
        body: Its bytes.
        most_bytes: Of an answer.

    Raises:
        UnusableAnswerError: The bytes are something else.
        OutOfBoundsError: It is nested too deep, or nothing but lists and objects.
    """
    # Those in texts are counted, too, of which an ordinary answer has less than the first bound.
    brackets = body.count(b"[") + body.count(b"{")
    if brackets > most_bytes // BYTES_PER_BRACKET:
        raise OutOfBoundsError(f"the answer has {brackets:,} lists and objects")
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth" in error.msg or "ecursion" in error.msg:
            raise _too_deep() from None
        said = body[:SAID_BYTES].decode("utf-8", "replace")
        raise UnusableAnswerError(f"the answer is not JSON ({error.msg})", said) from None
    if brackets > MOST_LEVELS and not _is_encodable(answer):
        raise _too_deep()
    if not isinstance(answer, dict):
        raise UnusableAnswerError(f"the answer is a JSON {type(answer).__name__}, not an object")
    return answer


def _too_deep() -> OutOfBoundsError:
    return OutOfBoundsError(f"the answer is nested more than {MOST_LEVELS} levels deep")


def _is_encodable(answer: Any) -> bool:
    try:
        orjson.dumps(answer)
    except TypeError:
        return False
    return True


def list_of(value: Any) -> list[Any]:
    """A list that may be missing.

    Raises:
        UnusableAnswerError: It is something else.
    """
    if not value:
        return []
    if not isinstance(value, list):
        raise UnusableAnswerError("the answer's tool calls are no list")
    return value


def finish_reason_of(choice: Mapping[str, Any]) -> str:
    """Why the model stopped, as the provider says it; empty where it does not say."""
    reason = choice.get("finish_reason")
    return reason[:FINISH_REASON_CHARS] if isinstance(reason, str) else ""


def text_of(content: Any) -> str | None:
    """The text of a message's content, parts joined; None where there is none."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) and content else None


def _tool_call(call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise UnusableAnswerError("the answer has a tool call without a function")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        # Some servers send the arguments as an object; an absent one means none.
        arguments = encode_json(arguments or {}).decode()
    return ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), arguments)


def usage_of(reported: Any, sent_bytes: int, answer: Any, price: Price) -> Usage:
    """The usage of one call, estimated from sizes where the provider reports none."""
    usage = reported if isinstance(reported, dict) else {}
    input_tokens = count_of(usage.get("prompt_tokens"))
    output_tokens = count_of(usage.get("completion_tokens"))
    if input_tokens is None:
        input_tokens = max(1, sent_bytes // 4)
    if output_tokens is None:
        output_tokens = estimate_tokens(encode_json(answer))
    details = usage.get("prompt_tokens_details")
    cached = count_of(details.get("cached_tokens")) if isinstance(details, dict) else None
    cached_tokens = min(cached or 0, input_tokens)
    return Usage(
        model_calls=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cost_usd=price.cost_usd(
            input_tokens=input_tokens, cached_tokens=cached_tokens, output_tokens=output_tokens
        ),
    )


def count_of(value: Any) -> int | None:
    """A count that a provider reports; None where it is no such thing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS else None
